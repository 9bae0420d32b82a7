"""`igniter edit`: the passes for the options, in order, and a check of the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import igniter
from igniter.errors import IgniterError
from igniter.frontend.saving import weight_bytes
from igniter.toolbox.edit import edits as e
from igniter.toolbox.edit.insert_nodes import ALL_READERS, InsertNodes
from igniter.toolbox.edit.verified import MOST_BYTES, check_edits
from igniter.toolbox.output import console, print_json

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.toolbox.edit.edit import Edit
    from igniter.toolbox.edit.request import EditRequest
    from igniter.toolbox.edit.verified import EditCheck


def run(asked: EditRequest) -> int:
    """Edits, checks, writes and prints; returns the exit status, 1 if the result is wrong."""
    edits = edits_of(asked)
    if asked.output and not edits:
        raise IgniterError("-o is given, and no edit: `igniter edit --help` lists them")
    if not edits and not asked.save_weights:
        raise IgniterError("nothing is asked for: `igniter edit --help` lists the edits")
    if edits and not asked.output:
        raise IgniterError("name the model to write with -o")
    if asked.only and not asked.save_weights:
        raise IgniterError("--only says which weights --save-weights writes, and that is not given")
    module = igniter.load(asked.model)
    told: dict[str, Any] = {}
    if asked.save_weights:
        written = module.save_weights(asked.save_weights, list(asked.only) or None)
        size = sum(w.nbytes for w in written.values())
        told["weights"] = {"path": asked.save_weights, "count": len(written), "bytes": size}
    ok = True
    if edits:
        module.edit(*edits)
        check = save_checked(module, asked.output, asked.keep_weights, asked.verify, asked.seed)
        ok = check.status != "differs"
        told |= {
            "model": asked.output if ok else None,
            "edits": [
                {"pass": r.pass_name, "about": r.node, "did": r.message} for r in module.remarks if r.kind != "missed"
            ],
            "check": check.to_dict(),
        }
    if asked.json:
        print_json(told)
    else:
        _print(told)
    return 0 if ok else 1


def save_checked(module: Module, output: str, keep: bool, verify: bool, seed: int) -> EditCheck:
    """Writes an edited module after a successful check. A big model is checked from the written file, to avoid a second
    write."""
    if weight_bytes(module.ir) > MOST_BYTES:
        module.save(output, keep_weights=keep)
        return check_edits(module.ir, module.source, module.edits, run=verify, path=Path(output), seed=seed)
    check = module.check_edits(run=verify, seed=seed)
    if check.status != "differs":
        module.save(output, keep_weights=keep)
    return check


def edits_of(asked: EditRequest) -> list[Edit]:
    """Returns the passes, in execution order."""
    made: list[Edit] = []
    if asked.opset:
        made.append(e.ConvertOpset(version=asked.opset))
    if asked.weights:
        made.append(e.ReplaceWeights(files=tuple(asked.weights)))
    if asked.weight:
        names, files = pairs("--weight", asked.weight)
        made.append(e.ReplaceWeights(weights=names, files=files))
    if asked.drop:
        parts = [text.partition("=") for text in asked.drop]
        made.append(e.DropNodes(nodes=tuple(p[0] for p in parts), by=tuple(p[2] for p in parts)))
    if asked.replace:
        nodes, by = pairs("--replace", asked.replace, "=>")
        made.append(e.ReplaceNodes(nodes=nodes, by=by))
    if asked.insert:
        made.append(_inserted(asked.insert))
    if asked.keep_last:
        made.append(e.KeepLast(outputs=tuple(asked.keep_last)))
    if asked.expose or asked.expose_matching or asked.expose_all:
        made.append(e.ExposeValues(values=tuple(asked.expose), pattern=asked.expose_matching, all=asked.expose_all))
    if asked.remove_output:
        made.append(e.RemoveOutputs(outputs=tuple(asked.remove_output)))
    if asked.remove_input:
        made.append(e.RemoveInputs(inputs=tuple(asked.remove_input)))
    if asked.type:
        names, types = pairs("--type", asked.type)
        made.append(e.ChangeTypes(values=names, types=types))
    return [*made, *_of_names(asked)]


def _of_names(asked: EditRequest) -> list[Edit]:
    made: list[Edit] = []
    if asked.free_dim:
        dims, symbols = pairs("--free-dim", asked.free_dim)
        made.append(e.FreeDims(dims=dims, symbols=symbols))
    if asked.fix_dim:
        dims, sizes = pairs("--fix-dim", asked.fix_dim)
        wrong = next((s for s in sizes if not s.isdigit()), None)
        if wrong is not None:
            raise IgniterError(f"--fix-dim takes a size, and '{wrong}' is none: --bind-dim makes dims equal")
        made.append(e.SetDims(dims=dims, to=tuple(int(s) for s in sizes)))
    if asked.bind_dim:
        dims, others = pairs("--bind-dim", asked.bind_dim)
        made.append(e.SetDims(dims=dims, to=others))
    for flag, texts, kind in (
        ("--rename-dim", asked.rename_dim, e.RenameDims),
        ("--rename-node", asked.rename_node, e.RenameNodes),
        ("--rename", asked.rename, e.RenameValues),
    ):
        if texts:
            old, new = pairs(flag, texts)
            made.append(kind(old=old, new=new))
    return made


def _inserted(texts: Sequence[str]) -> Edit:
    nodes: list[str] = []
    readers: list[str] = []
    for text in texts:
        node, at, who = text.rpartition("@") if "@" in text.rpartition(")")[2] else (text, "", "")
        nodes.append(node.strip())
        readers.append(who.strip() if at else ALL_READERS)
    return InsertNodes(nodes=tuple(nodes), readers=tuple(readers))


def pairs(flag: str, texts: Sequence[str], sign: str = "=") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Splits each text at the sign, into left and right parts; `IgniterError` names the option of a text without the
    sign."""
    left: list[str] = []
    right: list[str] = []
    for text in texts:
        first, found, second = text.partition(sign)
        if not found or not first.strip() or not second.strip():
            raise IgniterError(f"{flag} takes two things with {sign} between them, and '{text}' is not that")
        left.append(first.strip())
        right.append(second.strip())
    return tuple(left), tuple(right)


def _print(told: dict[str, Any]) -> None:
    out = console()
    if "weights" in told:
        w = told["weights"]
        out.print(f"{w['count']} weights, {w['bytes']:,} bytes, are in {w['path']}", markup=False)
    for edit in told.get("edits", ()):
        about = f" '{edit['about']}'" if edit["about"] else ""
        out.print(f"{edit['pass']}:{about} {edit['did']}", markup=False)
    if "check" in told:
        print_check(told["check"])
        out.print(f"written to {told['model']}" if told["model"] else "nothing is written", markup=False)


def print_check(check: dict[str, Any]) -> None:
    """Prints the outcome of a check of edits, in a line."""
    out = console()
    sizes = ", ".join(f"{k}={v}" for k, v in check["sizes"].items())
    at = f" at {sizes}" if sizes else ""
    if check["status"] == "passed":
        worst = max((float(o["max_error"]) for o in check["outputs"]), default=0.0)
        out.print(
            f"checked{at}: {len(check['outputs'])} outputs are the original's, largest relative error {worst:.1e}"
        )
    elif check["status"] == "runs":
        out.print(f"checked: it runs{at}; {check['reason']}", markup=False)
    else:
        out.print(f"{check['status']}: {check['reason']}", markup=False)
