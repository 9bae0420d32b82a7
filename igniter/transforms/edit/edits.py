"""All edit classes, for modules with several edits."""

from igniter.transforms.edit.change_types import ChangeTypes
from igniter.transforms.edit.convert_opset import ConvertOpset
from igniter.transforms.edit.drop_nodes import DropNodes
from igniter.transforms.edit.expose_values import ExposeValues
from igniter.transforms.edit.free_dims import FreeDims
from igniter.transforms.edit.insert_nodes import InsertNodes
from igniter.transforms.edit.remove_inputs import RemoveInputs
from igniter.transforms.edit.remove_outputs import RemoveOutputs
from igniter.transforms.edit.rename_dims import RenameDims
from igniter.transforms.edit.rename_nodes import RenameNodes
from igniter.transforms.edit.rename_values import RenameValues
from igniter.transforms.edit.replace_nodes import ReplaceNodes
from igniter.transforms.edit.replace_weights import ReplaceWeights
from igniter.transforms.edit.set_dims import SetDims

__all__ = [
    "ChangeTypes",
    "ConvertOpset",
    "DropNodes",
    "ExposeValues",
    "FreeDims",
    "InsertNodes",
    "RemoveInputs",
    "RemoveOutputs",
    "RenameDims",
    "RenameNodes",
    "RenameValues",
    "ReplaceNodes",
    "ReplaceWeights",
    "SetDims",
]
