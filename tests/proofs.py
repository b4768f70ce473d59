"""What the tests prove by repetition, and how often: the rows of the page "How Dittybag is tested"."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parent.parent


class Proof(Struct, frozen=True):
    """A claim, and the tests that repeat something to prove it."""

    claim: str
    file: str
    #: What is repeated, and the name of the constant or function whose call of `repetitions` says how often.
    counted: tuple[tuple[str, str], ...]
    #: The file whose full runs are recorded, if the numbers are in another one.
    tests: str = ""

    @property
    def recorded_as(self) -> str:
        return self.tests or self.file

    def counts(self, column: int) -> str:
        """Return what is repeated how often by `make test` (0) or by `make torture` (1)."""
        numbers = found_repetitions(self.file)
        return ", ".join(f"{numbers[name][column]:,} {what}" for what, name in self.counted)


@cache
def found_repetitions(file: str) -> dict[str, tuple[int, int]]:
    """Return the arguments of the calls of `repetitions` in a file, by the name of what contains the call."""
    found = {}
    for statement in ast.parse((ROOT / file).read_text()).body:
        for node in ast.walk(statement):
            match node:
                case ast.Call(
                    func=ast.Name("repetitions"), args=[ast.Constant(int(usual)), ast.Constant(int(full))]
                ):
                    found[_name(statement)] = (usual, full)
                case _:
                    pass
    return found


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
            return name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return name
        case _:
            return ""


PROOFS: Final[dict[str, tuple[Proof, ...]]] = {
    "Kills and faults": (
        Proof(
            "Two servers write to one SQLite file and are killed (SIGKILL) at random moments: every acknowledged write is "
            "there, none is half-written, index and change log agree with the rows",
            "tests/torture/test_kills.py",
            (("kills", "KILLS"),),
        ),
        Proof(
            "A purge is killed: it is done wholly or not at all, and an acknowledged one leaves no byte of the content",
            "tests/torture/test_purge_kills.py",
            (("purges", "PURGES"), ("kills", "KILLS")),
        ),
        Proof(
            "Agents race for tasks and are killed: each task has one holder, and no wake-up is lost",
            "tests/torture/test_task_claims.py",
            (("rounds", "ROUNDS"), ("kills", "KILLS"), ("wake-ups", "WAKES")),
        ),
        Proof(
            "PostgreSQL crashes, connections are killed and packets vanish under load: no acknowledged write is lost, "
            "none is made twice",
            "tests/storage/postgres/test_connection_loss.py",
            (("crashes", "RESTARTS"), ("killed connections", "KILLS"), ("times without network", "HOLES")),
        ),
        Proof(
            "A damaged database file is found, named and left as it is",
            "tests/cli/test_doctor.py",
            (("damaged files", "CORRUPTIONS"),),
        ),
        Proof(
            "A backup that is made while servers write is one state of the workspace",
            "tests/torture/test_backup_under_load.py",
            (("rounds of 6 backups", "ROUNDS"),),
        ),
        Proof(
            "`dittybag prime` in a client's hook prints nothing and exits with 0 whatever fails",
            "tests/cli/test_prime.py",
            (("faults", "FAULTS"),),
        ),
    ),
    "Hostile input": (
        Proof(
            "Malformed frames on stdio: no crash, no hang, every readable id is answered once",
            "tests/torture/test_malformed_frames.py",
            (("frames", "FRAMES"),),
        ),
        Proof(
            "Malformed HTTP requests, and 1,000 clients that use the same ids: no crash, no crossed response",
            "tests/torture/test_hostile_http_clients.py",
            (("requests", "REQUESTS"), ("calls per client", "CALLS")),
        ),
        Proof(
            "An OAuth token with any part replaced is refused",
            "tests/identity/test_tampered_tokens.py",
            (("tokens", "test_no_part_can_be_replaced_by_arbitrary_text"),),
        ),
    ),
    "Equal to a model": (
        Proof(
            "Random operations have the results of a model of dictionaries, also after reopening",
            "tests/storage_contract/backends.py",
            (("sequences on SQLite", "SqliteFiles"), ("on PostgreSQL", "PostgresSchemas")),
            "tests/storage_contract/test_random_operations.py",
        ),
        Proof(
            "Pipelined requests get the responses of requests that are sent one at a time",
            "tests/contracts/test_request_order.py",
            (("sequences", "SEQUENCES"),),
        ),
        Proof(
            "Search finds what a comparison with every text finds, in the same order on both databases",
            "tests/storage_contract/test_text_search_at_scale.py",
            (("documents", "DOCUMENTS"), ("queries", "QUERIES")),
        ),
        Proof(
            "Results fit into a client's limit, and following the offsets returns every item once",
            "tests/contracts/test_results_fit.py",
            (("items", "ITEMS"), ("calls", "CALLS")),
        ),
        Proof(
            "Through a lagging read replica, every client reads its own writes",
            "tests/storage/postgres/test_read_replicas.py",
            (("checks", "CHECKS"),),
        ),
        Proof(
            "An export that is imported restores everything byte for byte",
            "tests/exchange/test_export_round_trip.py",
            (("prompts and tasks", "test_many_prompts_and_tasks_round_trip"),),
        ),
    ),
    "What an agent gets": (
        Proof(
            "Context packs of random stores: never over the budget by the estimate of tokens, equal for equal input, "
            "nothing of other users and projects",
            "tests/storage_contract/test_context_packs.py",
            (("packs on each database", "PACKS"),),
        ),
        Proof(
            "A prompt has the same text as an MCP prompt, through tools, as a skill and in the shell",
            "tests/cli/test_prompt_faces.py",
            (("prompts", "test_every_face_hands_out_the_same_text"),),
        ),
    ),
    "Files of other programs": (
        Proof(
            "Adding and removing an entry restores JSON files of any layout byte for byte",
            "tests/clients/test_json_format.py",
            (("files", "test_any_layout_is_restored"),),
        ),
        Proof(
            "The same for TOML files",
            "tests/clients/test_toml_format.py",
            (("files", "test_any_layout_is_restored"),),
        ),
    ),
}
