"""All edit classes, for modules with several edits."""

from igniter.toolbox.edit.change_types import ChangeTypes
from igniter.toolbox.edit.convert_opset import ConvertOpset
from igniter.toolbox.edit.drop_nodes import DropNodes
from igniter.toolbox.edit.expose_values import ExposeValues
from igniter.toolbox.edit.free_dims import FreeDims
from igniter.toolbox.edit.insert_nodes import InsertNodes
from igniter.toolbox.edit.keep_last import KeepLast
from igniter.toolbox.edit.remove_inputs import RemoveInputs
from igniter.toolbox.edit.remove_outputs import RemoveOutputs
from igniter.toolbox.edit.rename_dims import RenameDims
from igniter.toolbox.edit.rename_nodes import RenameNodes
from igniter.toolbox.edit.rename_values import RenameValues
from igniter.toolbox.edit.replace_nodes import ReplaceNodes
from igniter.toolbox.edit.replace_weights import ReplaceWeights
from igniter.toolbox.edit.set_dims import SetDims

__all__ = [
    "ChangeTypes",
    "ConvertOpset",
    "DropNodes",
    "ExposeValues",
    "FreeDims",
    "InsertNodes",
    "KeepLast",
    "RemoveInputs",
    "RemoveOutputs",
    "RenameDims",
    "RenameNodes",
    "RenameValues",
    "ReplaceNodes",
    "ReplaceWeights",
    "SetDims",
]
