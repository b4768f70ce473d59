"""Users, tokens and members: what every backend keeps of them, and in which order."""

from __future__ import annotations

import pytest

from dittybag.domain.accounts import AccountEvent, Member, Principal, is_token, token_hash
from dittybag.domain.errors import (
    Invalid,
    LastMember,
    MemberNotFound,
    NameTaken,
    ProjectNotFound,
    TokenNotFound,
    UserDisabled,
    UserNotFound,
)
from dittybag.domain.ports import Transaction
from dittybag.services.account_service import AccountService
from dittybag.services.workspace import Workspace
from tests.storage_contract.desk import ACTOR, Desk, OpenStore

HOUR = 3600 * 1_000_000


@pytest.fixture
def accounts(desk: Desk) -> AccountService:
    return desk.workspace.accounts


async def test_users_are_kept_in_the_order_of_their_names(desk: Desk, accounts: AccountService) -> None:
    for name in ("bob", "alice", "Zoe", "_x", "carol@example.org", "0"):
        await accounts.add_user(name, actor=ACTOR)
    listed = [user.name for user in await accounts.users()]
    assert listed == ["0", "Zoe", "_x", "alice", "bob", "carol@example.org"]
    assert all(user.disabled_at is None and user.created_at > 0 for user in await accounts.users())


async def test_no_two_names_differ_in_case_only(accounts: AccountService) -> None:
    await accounts.add_user("Alice", actor=ACTOR)
    for name in ("Alice", "alice", "ALICE"):
        with pytest.raises(NameTaken) as taken:
            await accounts.add_user(name, actor=ACTOR)
        assert taken.value.name == "Alice"
    assert (await accounts.create_token("aLiCe", "read", actor=ACTOR)).token.user == "Alice"


async def test_a_token_is_known_by_its_text_alone(desk: Desk, accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "admin", actor=ACTOR, label="laptop")
    assert is_token(made.text)
    assert made.token.hint == made.text[-4:]
    assert await accounts.authenticate(made.text, desk.project) == Principal("alice", "admin", "write")
    for other in (made.text[:-1], made.text + "x", made.text.upper(), "", token_hash(made.text)):
        assert await accounts.authenticate(other, desk.project) is None
    tokens, users = await accounts.tokens()
    assert tokens == [made.token]
    assert [user.name for user in users] == ["alice"]
    assert (made.token.label, made.token.used_at, made.token.revoked_at) == ("laptop", None, None)


async def test_numbers_of_tokens_count_up(accounts: AccountService) -> None:
    for name in ("alice", "bob"):
        await accounts.add_user(name, actor=ACTOR)
    ids = [
        (await accounts.create_token(name, "read", actor=ACTOR)).token.id
        for name in ("alice", "bob", "alice")
    ]
    assert ids == sorted(set(ids))
    assert [token.id for token in (await accounts.tokens("alice"))[0]] == [ids[0], ids[2]]


async def test_revoked_expired_and_disabled_are_all_unknown(desk: Desk, accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    now = await desk.read(_now)
    made = [await accounts.create_token("alice", "write", actor=ACTOR) for _ in range(2)]
    lasting = await accounts.create_token("alice", "write", actor=ACTOR, expires_at=now + HOUR)
    assert lasting.token.expires_at == now + HOUR
    assert not lasting.token.is_valid(now + HOUR)
    with pytest.raises(Invalid):
        await accounts.create_token("alice", "write", actor=ACTOR, expires_at=now - HOUR)
    await accounts.revoke([made[0].token.id], actor=ACTOR)
    assert await accounts.authenticate(made[0].text, desk.project) is None
    assert await accounts.authenticate(made[1].text, desk.project) is not None
    user, revoked = await accounts.disable("alice", actor=ACTOR)
    assert user.disabled_at is not None
    assert [token.id for token in revoked] == [made[1].token.id, lasting.token.id]
    with pytest.raises(UserDisabled):
        await accounts.create_token("alice", "read", actor=ACTOR)
    await accounts.enable("alice", actor=ACTOR)
    for one in (*made, lasting):
        assert await accounts.authenticate(one.text, desk.project) is None


async def test_a_disabled_user_is_unknown_even_with_a_token_that_is_not_revoked(
    desk: Desk, accounts: AccountService
) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    (user,) = await accounts.users()

    async def disable(transaction: Transaction) -> None:
        from msgspec.structs import replace

        await transaction.accounts.put_user(replace(user, disabled_at=transaction.now))

    await desk.write(disable)
    assert await accounts.authenticate(made.text, desk.project) is None


async def _now(transaction: Transaction) -> int:
    return transaction.now


async def test_revoking_is_for_all_or_none(accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    for missing in (99, 0, -1, 1 << 63, 1 << 70):
        with pytest.raises(TokenNotFound):
            await accounts.revoke([made.token.id, missing], actor=ACTOR)
    assert (await accounts.tokens())[0] == [made.token]


async def test_using_a_token_is_noted(desk: Desk, accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    found = await accounts.verify_token(made.text, desk.project)
    assert found is not None
    assert found.is_use_due
    await accounts.record_use(made.token.id)
    again = await accounts.verify_token(made.text, desk.project)
    assert again is not None
    assert not again.is_use_due
    assert again.token.used_at is not None
    await accounts.record_use(99)


async def test_members_decide_who_sees_a_project(desk: Desk, accounts: AccountService) -> None:
    for name in ("alice", "bob", "carol"):
        await accounts.add_user(name, actor=ACTOR)
    project = await desk.workspace.projects.create("team", actor=ACTOR)

    async def role(name: str) -> str | None:
        principal = await accounts.external_principal(name, "write", project.id)
        assert principal is not None
        return principal.role

    async def hidden(name: str) -> set[int]:
        return await desk.read(lambda transaction: transaction.accounts.projects_hidden_from(name))

    assert [await role(name) for name in ("alice", "bob", "elsewhere")] == ["write"] * 3
    assert await hidden("bob") == set()
    await accounts.share("team", "bob", "read", actor=ACTOR)
    members = await accounts.share("team", "alice", "write", actor=ACTOR)
    assert members == [Member("alice", "write"), Member("bob", "read")] == await accounts.members("team")
    assert [await role(name) for name in ("alice", "bob", "carol", "elsewhere")] == [
        "write",
        "read",
        None,
        None,
    ]
    assert (await hidden("alice"), await hidden("carol")) == (set(), {project.id})
    assert await accounts.share("team", "bob", "write", actor=ACTOR) == [
        Member("alice", "write"),
        Member("bob", "write"),
    ]
    assert await accounts.unshare("team", "alice", actor=ACTOR) == [Member("bob", "write")]
    with pytest.raises(LastMember):
        await accounts.unshare("team", "bob", actor=ACTOR)
    assert await role("carol") is None
    assert await accounts.unshare("team", "bob", actor=ACTOR, to_all=True) == []
    assert await role("carol") == "write"


async def test_what_is_not_there_is_said(accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    for missing in (accounts.disable, accounts.enable, accounts.tokens):
        with pytest.raises(UserNotFound):
            await missing("nobody", **({} if missing == accounts.tokens else {"actor": ACTOR}))
    with pytest.raises(UserNotFound):
        await accounts.share("default", "nobody", "read", actor=ACTOR)
    with pytest.raises(ProjectNotFound):
        await accounts.share("nowhere", "alice", "read", actor=ACTOR)
    with pytest.raises(MemberNotFound):
        await accounts.unshare("default", "alice", actor=ACTOR)


async def test_others_vouch_for_anybody_but_disabled_users_and_the_owner(
    desk: Desk, accounts: AccountService
) -> None:
    assert await accounts.external_principal("auth0|7", "read", desk.project) == Principal(
        "auth0|7", "read", "write"
    )
    assert await accounts.external_principal("dev-user", "admin", desk.project) is None
    assert await accounts.external_principal("DEV-user", "admin", desk.project) is None
    await accounts.add_user("alice", actor=ACTOR)
    assert await accounts.external_principal("Alice", "admin", desk.project) is None
    await accounts.disable("alice", actor=ACTOR)
    assert await accounts.external_principal("alice", "admin", desk.project) is None
    await accounts.add_user("dev-user", actor=ACTOR)
    assert await accounts.external_principal("dev-user", "read", desk.project) is not None


async def test_everything_is_noted_and_nothing_is_in_the_change_log(
    desk: Desk, accounts: AccountService
) -> None:
    before = await desk.newest_change()
    await accounts.add_user("alice", actor="owner")
    made = await accounts.create_token("alice", "write", actor="owner")
    await accounts.share("default", "alice", "read", actor="owner")
    await accounts.unshare("default", "alice", actor="owner", to_all=True)
    await accounts.disable("alice", actor="somebody")
    await accounts.disable("alice", actor="somebody")
    await accounts.enable("alice", actor="owner")
    noted = await accounts.events(100)
    token = str(made.token.id)
    assert [(event.actor, event.action, event.user, event.detail) for event in reversed(noted)] == [
        ("owner", "user.add", "alice", ""),
        ("owner", "token.create", "alice", f"{token} write"),
        ("owner", "project.share", "alice", f"{desk.project} read"),
        ("owner", "project.unshare", "alice", f"{desk.project}"),
        ("somebody", "token.revoke", "alice", token),
        ("somebody", "user.disable", "alice", ""),
        ("owner", "user.enable", "alice", ""),
    ]
    assert all(event.at > 0 for event in noted)
    assert await accounts.events(2) == noted[:2]
    assert await desk.newest_change() == before


async def test_what_one_process_does_others_see(
    desk: Desk, open_store: OpenStore, accounts: AccountService
) -> None:
    other = Workspace(await open_store()).accounts
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    assert await other.authenticate(made.text, desk.project) is not None
    await other.revoke([made.token.id], actor=ACTOR)
    assert await accounts.authenticate(made.text, desk.project) is None


async def test_a_use_case_that_fails_leaves_nothing_behind(desk: Desk, accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)

    async def work(transaction: Transaction) -> None:
        (user,) = await transaction.accounts.users()
        await transaction.accounts.put_member(desk.project, user.name, "read")
        await transaction.accounts.add_event(AccountEvent(at=1, actor="x", action="x", user="alice"))
        raise LookupError

    with pytest.raises(LookupError):
        await desk.write(work)
    assert await accounts.members("default") == []
    assert len(await accounts.events(10)) == 1


async def test_the_log_can_be_read_with_only_one_users_tasks(desk: Desk) -> None:
    await desk.task("Mine")
    mine = desk.caller.user

    async def page(user: str | None, **more: object) -> list[str]:
        about: dict[str, object] = {"kind": "task", "entity": None, "before": None, "limit": 10, **more}
        found = await desk.read(
            lambda transaction: transaction.changes.page(desk.project, user=user, **about)  # type: ignore[arg-type]
        )
        return [change.entity for change in found]

    (number,) = await page(mine)
    assert await page(None) == await page(mine, entity=number) == [number]
    assert await page("somebody") == await page("somebody", entity=number) == []
    assert await page("somebody", kind=None) != []
