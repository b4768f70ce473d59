"""Commands that are refused: the exit status and the problem, and that nothing has changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag, failure

#: Commands, with FOLDER for a folder of files; the exit status; the problem, or a hint.
REFUSED = [
    ("prompt add 'my prompt' x", 1, "Prompt name 'my prompt' contains invalid characters"),
    ("prompt add there x", 4, "Prompt 'there' already exists in project 'default'"),
    ("prompt add x y --title there", 4, "A prompt with the title 'there' already exists"),
    ("prompt add x", 1, "Content must not be empty"),
    ("prompt add", 2, "NAME is required"),
    ("prompt add x a --file b", 2, "CONTENT and --file cannot be used together"),
    ("prompt add x --file no-such-file", 3, "no-such-file could not be read: No such file"),
    ("prompt add x --file /", 1, "/ could not be read: Is a directory"),
    ("prompt add x --file /dev/zero", 1, "Content must be at most 1048576 bytes, but has more"),
    ("prompt add x --file FOLDER/bytes", 1, "is not UTF-8 text: invalid byte at offset 0"),
    ("prompt add x y -t 'a b'", 1, "Tag 'a b' contains invalid characters"),
    ("prompt add x y -a 1", 1, "Argument name '1' must be a letter"),
    ("prompt add x y -a ': about'", 2, "use NAME or NAME?"),
    ("prompt add x {{a}} -a a --verbatim", 2, "--verbatim cannot be used together with --argument"),
    ("prompt add x \udcff", 2, "not valid UTF-8"),
    ("prompt edit other --name there", 4, "Prompt 'there' already exists"),
    ("prompt edit other --name 'a b'", 1, "contains invalid characters"),
    ("prompt edit nope x", 3, "Prompt 'nope' does not exist"),
    ("prompt show tow", 3, "hint: did you mean two?"),
    ("prompt delete there nope", 3, "Prompt 'nope' does not exist"),
    ("prompt delete xyzzy", 3, "hint: run `dittybag prompt list` to see all prompts"),
    ("prompt delete", 2, "NAME is required"),
    ("prompt list --limit 0", 2, "--limit: must be an integer, 1 to 1000000"),
    ("prompt list -p nope", 3, "Project 'nope' does not exist"),
    (f"prompt list --search {'x' * 1001}", 1, "Query must be at most 1000 characters"),
    (f"prompt list {'-t a --tag b ' * 30}", 1, "At most 50 tags are allowed, not 60"),
    ("prompt render there color", 2, "'color' is not of the form KEY=VALUE"),
    ("prompt render there --args-json /dev/null", 2, "The arguments are not a JSON object"),
    ("prompt render nope", 3, "Prompt 'nope' does not exist"),
    ("prompt render nope:nope", 3, "Prompt not found: nope:nope"),
    ("resource add FOLDER/words --name there", 4, "Resource 'there' already exists in project 'default'"),
    ("resource add FOLDER/words --uri dittybag://resources/there", 4, "already exists"),
    ("resource add FOLDER/words --name 'a b'", 1, "Resource name 'a b' contains invalid characters"),
    ("resource add FOLDER/words --uri no", 1, "URI 'no' is not a valid URI"),
    ("resource add FOLDER/words --mime-type no", 1, "MIME type 'no' is not valid"),
    ("resource add FOLDER/bytes --mime-type text/plain", 1, "Content must be UTF-8 text"),
    ("resource add FOLDER/none", 3, "none could not be read: No such file"),
    ("resource add FOLDER --title x", 2, "--title requires a single file"),
    ("resource add FOLDER -", 2, "`-` cannot be added with other files"),
    ("resource add -", 2, "Standard input has no file name"),
    ("resource add", 2, "FILE|FOLDER is required"),
    ("resource show ther", 3, "hint: did you mean there?"),
    ("resource show dittybag://resources/thereabouts", 3, "hint: did you mean dittybag://resources/there"),
    ("resource show there -o FOLDER/words", 4, "words already exists"),
    ("resource show there -o FOLDER/none/x", 1, "could not be written: No such file"),
    ("resource show there -o FOLDER", 1, "could not be written: Is a directory"),
    ("resource edit there FOLDER/bytes", 1, "Content must be UTF-8 text"),
    ("resource edit there --name second", 4, "Resource 'second' already exists"),
    ("resource edit there --uri dittybag://resources/second", 4, "A resource with the URI"),
    ("resource edit xyzzy --title x", 3, "hint: run `dittybag resource list` to see all resources"),
    ("resource delete there xyzzy", 3, "Resource 'xyzzy' does not exist"),
    ("task add x -P 6", 1, "Priority must be between 1 and 5"),
    ("task add x -P high", 2, "'high' is not a valid int"),
    ("task add x -e heavy", 1, "Energy must be one of light, medium, deep"),
    ("task add ''", 1, "Title must be between 1 and 500 characters"),
    ("task add '!4'", 1, "The task has no title"),
    ("task add", 2, "TITLE is required"),
    ("task add x -d someday", 2, "'someday' is not a date. Examples: tomorrow, fri"),
    ("task add x -d 2026-02-30", 1, "due_date must be an ISO 8601 date"),
    ("task add x -d 30m", 2, "'30m' is not a date"),
    ("task add 'Pay rent due 30m'", 1, "due 30m: a due date has no minutes and hours from now"),
    ("task add x --blocked-by one", 2, "'one' is not the number of a task"),
    ("task add x --blocked-by 9", 1, "blocked_by: task 9 does not exist"),
    ("task add x --parent 1,2", 2, "a task can be a part of one other task only"),
    ("task add x --parent 9", 1, "parent: task 9 does not exist"),
    ("task add x --blocked-by 1 --parent 1", 4, "These tasks would wait for each other"),
    ("task add x --status open", 2, "'open' is not one of"),
    (f"task add x -l {'y' * 51}", 1, "must be between 1 and 50 characters"),
    ("task edit 99 -P 1", 3, "Task 99 not found"),
    ("task edit 1 --blocked-by 2", 4, "These tasks would wait for each other"),
    ("task edit 1 --comment ' '", 2, "The comment is empty"),
    (f"task edit 1 --comment {'x' * 10_001}", 1, "A comment must be between 1 and 10000 characters"),
    ("task done 1 99", 3, "Task 99 not found"),
    ("task done 0", 3, "Task 0 not found"),
    (f"task done {'9' * 30}", 3, "not found"),
    ("task done one", 3, "No task is called 'one'"),
    ("task done", 2, "TASK is required"),
    ("task done 1 2 --fence 3", 2, "--fence is that of one task; give one TASK"),
    ("task delete 1 99", 3, "Task 99 not found"),
    ("task show 99", 3, "Task 99 not found"),
    ("task list --due fri --overdue", 2, "--due requires a date and cannot be used with --overdue"),
    ("task list --due ''", 2, "--due requires a date"),
    ("task list --no-project -p default", 2, "--project and --no-project cannot be used together"),
    ("task list --ready --status todo", 2, "--ready and --status cannot be used together"),
    ("task list --ready --include-done", 2, "--ready and --include-done cannot be used together"),
    ("task list --status done --include-done", 2, "--status and --include-done cannot be used together"),
    ("task list --parent 999", 1, "parent: task 999 does not exist"),
    ("task list -l CORE", 1, "no task has the label 'CORE'; labels are for example core"),
    ("task list -l CORE --ready", 1, "no task has the label 'CORE'; labels are for example core"),
    *(
        (
            f"{command} -p defalt",
            3,
            "error: Project 'defalt' does not exist\nhint: did you mean default?\nhint: ",
        )
        for command in (
            *("task add x", "task list", "task edit 1", "task next", "task graph", "import FOLDER/words.csv"),
            *("prompt add x y", "prompt list", "resource add FOLDER/words", "resource list", "tag list"),
            *("search x", "history", "undo --yes", "purge there --yes", "pin there", "unpin there"),
        )
    ),
    ("task list -p 'a b; ls'", 3, "hint: to create it, run: dittybag project create 'a b; ls'"),
    ("task next --wait soon", 2, "'soon' is not a duration. Examples: 90s, 15m, 2h"),
    ("task next --wait 25h", 2, "at most 24 hours; leave it out to wait without end"),
    ("task next --lease 0s", 1, "lease must be between 1 second and 24 hours"),
    ("task next --lease 2d", 1, "lease must be between 1 second and 24 hours"),
    ("task next --as ''", 2, "The name must be between 1 and 200 characters"),
    ("task next --as 'a\x1b'", 2, "The name must not contain control characters"),
    ("task next --take", 2, "--take requires TASK"),
    ("task next 1 --wait", 2, "use them without TASK"),
    ("task next 9", 3, "Task 9 not found"),
    ("task next 2", 4, "Task 2 cannot be claimed: it waits for task 1"),
    ("task renew 1", 2, "--fence is required"),
    (f"task renew 1 --fence {'9' * 30}", 4, "is no longer valid"),
    ("task release 1", 4, "it is todo, so nobody works on it"),
    ("tag rename nope x", 3, "No prompt in project 'default' has the tag 'nope'"),
    ("tag rename funn x", 3, "hint: did you mean fun?"),
    ("tag rename fun ''", 1, "Tag '' must be 1-50 characters"),
    ("project create default", 4, "Project 'default' already exists"),
    ("project create ' x'", 1, "Project name must not start or end with a space"),
    ("project create ''", 1, "Project name must be 1-100 characters"),
    ("project create 'a\nb'", 1, "Project name must not contain control characters"),
    ("project create auto", 1, "Project name must not be 'auto'"),
    ("project create", 2, "NAME is required"),
    ("project create x --db y --workspace z", 2, "use either --workspace or --db, not both"),
    ("project rename default auto", 1, "Project name must not be 'auto'"),
    ("project rename nope x", 3, "Project 'nope' does not exist"),
    ("project rename default x", 4, "cannot be renamed or deleted"),
    ("project delete default", 4, "cannot be renamed or deleted"),
    ("project delete nope", 3, "Project 'nope' does not exist"),
    ("project share nope alice", 3, "Project 'nope' does not exist"),
    ("project share default nobody", 3, "User 'nobody' does not exist"),
    ("project unshare default alice", 3, "User 'alice' is not a member of project 'default'"),
    ("project unshare default nobody", 3, "User 'nobody' does not exist"),
    ("project show nope", 3, "Project 'nope' does not exist"),
    ("history --since soon", 2, "'soon' is not a"),
    ("history --kind book", 2, "'book' is not one of"),
    ("history --limit 0", 2, "--limit: must be an integer"),
    ("history --diff", 2, "--diff takes the number of a change, and no other option"),
    ("history review --diff", 2, "must be an integer, 1 or more"),
    ("history 3 --diff --kind prompt", 2, "--diff takes the number of a change, and no other option"),
    ("history 3 --diff -p default", 2, "--diff takes the number of a change, and no other option"),
    ("history 3 --diff --limit 5", 2, "--diff takes the number of a change, and no other option"),
    ("history 999 --diff", 3, "Change 999 not found"),
    ("restore 999", 3, "Change 999 not found"),
    ("undo 3 --last 2 --yes", 2, "Give only one of CHANGE and --last"),
    ("undo --last 2 --since 1h --yes", 2, "Give only one of --last and --since"),
    ("undo --actor bob --yes", 2, "--actor requires --since"),
    ("undo nonsense --yes", 2, "must be an integer, 1 or more"),
    ("undo 999 --yes", 3, "Change 999 not found"),
    ("purge there --yes", 4, "'there' matches several items"),
    ("purge --yes", 2, "Give REF or --resume"),
    ("purge --kind task --yes", 2, "Give REF or --resume"),
    ("purge --keep-current --yes", 2, "Give REF or --resume"),
    (f"search {'x' * 5000}", 1, "Query must be at most 1000 characters"),
    ("export - --as folder", 2, "A folder export requires a folder name"),
    ("import", 2, "SOURCE is required"),
    ("import x --as tape", 2, "'tape' is not one of"),
    ("import x --on-conflict shout", 2, "'shout' is not one of"),
    ("completion csh", 2, "'bash', 'zsh', 'fish'"),
    ("serve --profile nope", 2, "'nope'; use one of: all, agent, mcpkg, twig, tasks, prompt-store"),
    ("serve --toolsets tasks,nope", 2, "there is no toolset 'nope'"),
    ("serve --profile tasks --toolsets prompts", 2, "has no tools in these toolsets; its toolsets: tasks"),
    ("serve --project nope", 3, "Project 'nope' does not exist in "),
    ("serve --workspace ../x", 2, "'../x' is not a valid workspace name"),
    ("serve --db", 2, "--db requires a value"),
    ("serve --dance", 2, "Unknown option --dance\nhint: for help, run: dittybag serve --help\n"),
    ("serve --tolset tasks", 2, "Unknown option --tolset\nhint: did you mean --toolsets?\n"),
    ("serve --read-only=maybe", 2, "--read-only does not take a value"),
    ("serve --http --auth yes", 2, "--auth must be one of off, tokens, not 'yes'"),
    ("serve --http --auth ''", 2, "--auth must be one of off, tokens, not ''"),
    ("serve --http --auth", 2, "--auth requires a value"),
    ("serve --auth tokens", 2, "--auth tokens requires --http"),
    ("serve --http 0.0.0.0:0 --auth off", 2, "anyone who can reach 0.0.0.0 could"),
    ("serve --http --allow-host https://x.org", 2, "--allow-host must be a host name such as"),
    ("serve --http --allow-host x.org:80", 2, "without a port, not 'x.org:80'"),
    ("serve --http --allow-host '*'", 2, "not '*'"),
    ("serve --http --allow-host", 2, "--allow-host requires a value"),
    ("serve --http --auth tokens --rate-limit 50", 2, "or off, not '50'"),
    ("serve --http --auth tokens --rate-limit 0/s", 2, "such as 50/s, 3000/m or 10000/h"),
    ("serve --http --auth tokens --rate-limit 1000001/s", 2, "from 1 to 1000000"),
    ("serve --http --auth tokens --rate-limit-burst 0", 2, "integer from 1 to 1000000, not '0'"),
    ("serve --http --rate-limit 5/s", 2, "a rate limit requires --auth tokens"),
    ("serve --http no.such.host.invalid:0 --auth tokens", 2, "cannot listen on no.such.host.invalid:0"),
    ("library add", 2, "SOURCE is required"),
    ("library add nowhere", 3, "nowhere: no such file or folder"),
    ("library add -- --upload-pack=x", 1, "not a folder or a Git URL"),
    ("library add 'ext::sh -c x'", 1, "makes Git run another program"),
    ("library add FOLDER --name '!!!'", 1, "'!!!' is not a valid library name; use at least one letter"),
    ("library add FOLDER --folder ../src", 1, "invalid folder '../src': the path contains '..'"),
    ("library add FOLDER --folder nothing", 1, "there is no folder 'nothing' in it"),
    ("library add https://example.org/x --link", 1, "only a folder can be linked"),
    ("library update nothing", 3, "Library 'nothing' does not exist"),
    ("library remove nothing", 3, "Library 'nothing' does not exist"),
    ("library remove ../../etc --yes", 3, "Library '../../etc' does not exist"),
    ("library new -- ---", 1, "is not a valid library name"),
    ("library show nothing", 3, "nothing"),
    ("library show nothing:here", 3, "nothing"),
    ("library check nothing", 3, "nothing"),
    ("library check ./nothing", 3, "nothing"),
    ("user add ALICE", 4, "User 'alice' already exists"),
    ("user add ''", 1, "User name must be 1-100 characters"),
    ("user add -- -x", 1, "start with a letter, a digit or _"),
    ("user add 'a b'", 1, "User name must contain only"),
    ("user add ä", 1, "User name must contain only"),
    ("user add", 2, "NAME is required"),
    ("user disable nobody", 3, "User 'nobody' does not exist"),
    ("user enable nobody", 3, "User 'nobody' does not exist"),
    ("token create --user nobody --scope read", 3, "User 'nobody' does not exist"),
    ("token create --user alice", 2, "--scope is required"),
    ("token create --scope read", 2, "--user is required"),
    ("token create --user alice --scope root", 2, "'root' is not one of"),
    ("token create --user alice --scope read --expires 0d", 2, "is not a valid time in the future"),
    (f"token create --user alice --scope read --label {'x' * 101}", 1, "Label must be"),
    ("token create --user alice --scope read --label 'a\nb'", 1, "Label must not"),
    ("token list --user nobody", 3, "User 'nobody' does not exist"),
    ("token revoke 7", 3, "Token 7 does not exist"),
    ("token revoke 0", 2, "ID: must be an integer, 1 or more"),
    ("token revoke", 2, "ID is required"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder that no refused command changes, and files beside it."""
    home, files = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("files")
    (files / "words").write_text("Words")
    (files / "bytes").write_bytes(b"\xff")
    (files / "words.csv").write_text("title\nImported\n")
    for name in ("there", "other", "two"):
        dittybag(home, "prompt", "add", name, name, "-t", "fun")
    for name in ("there", "second"):
        dittybag(home, "resource", "add", str(files / "words"), "--name", name)
    dittybag(home, "task", "add", "First", "-l", "core")
    dittybag(home, "task", "add", "Second", "--blocked-by", "1")
    dittybag(home, "user", "add", "alice")
    before = state(home)
    (home / "files").symlink_to(files)
    contents = {file.name: file.read_bytes() for file in files.iterdir()}
    yield home
    assert state(home) == before
    assert {file.name: file.read_bytes() for file in files.iterdir()} == contents


def state(home: Path) -> list[object]:
    """Return all that commands could change."""
    listing = (
        ("history", "--limit", "100"),
        ("user", "list"),
        ("token", "list"),
        ("project", "list"),
        ("library", "list"),
    )
    return [data(dittybag(home, *words, "--json")) for words in listing]


@pytest.mark.parametrize(("command", "status", "problem"), REFUSED)
def test_a_refused_command_says_why(home: Path, command: str, status: int, problem: str) -> None:
    words = [word.replace("FOLDER", str(home / "files")) for word in shlex.split(command)]
    result = dittybag(home, *words, status=status)
    assert problem in result.stderr
    assert result.stderr.startswith("error: ")
    assert (result.stdout, "Traceback" in result.stderr) == ("", False)
    assert words[0] != "serve" or "\nhint: " in result.stderr


def test_a_refusal_has_a_code_and_hints_for_programs(home: Path) -> None:
    error = failure(dittybag(home, "task", "show", "99", "--json", status=3))
    assert (error["code"], error["message"], error["hints"]) == ("TASK_NOT_FOUND", "Task 99 not found", [])
    error = failure(dittybag(home, "tag", "rename", "funn", "z", "--json", status=3))
    assert (error["code"], error["hints"]) == ("NOT_FOUND", ["did you mean fun?"])
    error = failure(dittybag(home, "export", "-", "--json", status=2))
    assert error["message"].startswith("--json requires a file or a folder")
