"""Storage of users, tokens and members."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

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
from dittybag.domain.queries import ChangeQuery
from dittybag.services.account_service import AccountService
from dittybag.services.workspace import Workspace
from tests.storage_contract.store_session import ACTOR, OpenStore, StoreSession

HOUR = 3600 * 1_000_000


@pytest.fixture
def accounts(session: StoreSession) -> AccountService:
    return session.workspace.accounts


async def test_users_are_listed_by_name(session: StoreSession, accounts: AccountService) -> None:
    for name in ("bob", "alice", "Zoe", "_x", "carol@example.org", "0"):
        await accounts.add_user(name, actor=ACTOR)
    listed = [user.name for user in await accounts.users()]
    assert listed == ["0", "Zoe", "_x", "alice", "bob", "carol@example.org"]
    assert all(user.disabled_at is None and user.created_at > 0 for user in await accounts.users())


async def test_names_that_differ_only_in_case_conflict(accounts: AccountService) -> None:
    await accounts.add_user("Alice", actor=ACTOR)
    for name in ("Alice", "alice", "ALICE"):
        with pytest.raises(NameTaken) as taken:
            await accounts.add_user(name, actor=ACTOR)
        assert taken.value.name == "Alice"
    assert (await accounts.create_token("aLiCe", "read", actor=ACTOR)).token.user == "Alice"


async def test_only_the_exact_text_of_a_token_authenticates(
    session: StoreSession, accounts: AccountService
) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "admin", actor=ACTOR, label="laptop")
    assert is_token(made.text)
    assert made.token.hint == made.text[-4:]
    verified = await accounts.verify_token(made.text, session.project)
    assert verified is not None
    assert verified.principal == Principal("alice", "admin", "write")
    for other in (made.text[:-1], made.text + "x", made.text.upper(), "", token_hash(made.text)):
        assert await accounts.verify_token(other, session.project) is None
    tokens, users = await accounts.tokens()
    assert tokens == [made.token]
    assert [user.name for user in users] == ["alice"]
    assert (made.token.label, made.token.used_at, made.token.revoked_at) == ("laptop", None, None)


async def test_token_ids_increase(accounts: AccountService) -> None:
    for name in ("alice", "bob"):
        await accounts.add_user(name, actor=ACTOR)
    ids = [
        (await accounts.create_token(name, "read", actor=ACTOR)).token.id
        for name in ("alice", "bob", "alice")
    ]
    assert ids == sorted(set(ids))
    assert [token.id for token in (await accounts.tokens("alice"))[0]] == [ids[0], ids[2]]


async def test_revoked_and_expired_tokens_and_disabled_users_do_not_authenticate(
    session: StoreSession, accounts: AccountService
) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    now = await session.read(_now)
    made = [await accounts.create_token("alice", "write", actor=ACTOR) for _ in range(2)]
    lasting = await accounts.create_token("alice", "write", actor=ACTOR, expires_at=now + HOUR)
    assert lasting.token.expires_at == now + HOUR
    assert not lasting.token.is_valid(now + HOUR)
    with pytest.raises(Invalid):
        await accounts.create_token("alice", "write", actor=ACTOR, expires_at=now - HOUR)
    await accounts.revoke([made[0].token.id], actor=ACTOR)
    assert await accounts.verify_token(made[0].text, session.project) is None
    assert await accounts.verify_token(made[1].text, session.project) is not None
    user, revoked = await accounts.disable("alice", actor=ACTOR)
    assert user.disabled_at is not None
    assert [token.id for token in revoked] == [made[1].token.id, lasting.token.id]
    with pytest.raises(UserDisabled):
        await accounts.create_token("alice", "read", actor=ACTOR)
    await accounts.enable("alice", actor=ACTOR)
    for one in (*made, lasting):
        assert await accounts.verify_token(one.text, session.project) is None


async def test_a_token_does_not_authenticate_after_it_has_expired(
    session: StoreSession, accounts: AccountService
) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    soon = await session.read(_now) + 300_000
    made = await accounts.create_token("alice", "write", actor=ACTOR, expires_at=soon)
    assert await accounts.verify_token(made.text, session.project) is not None
    while await session.read(_now) < soon:
        pass
    assert await accounts.verify_token(made.text, session.project) is None


async def test_a_disabled_user_does_not_authenticate_even_with_a_valid_token(
    session: StoreSession, accounts: AccountService
) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    (user,) = await accounts.users()

    async def disable(transaction: Transaction) -> None:
        from msgspec.structs import replace

        await transaction.accounts.put_user(replace(user, disabled_at=transaction.now))

    await session.write(disable)
    assert await accounts.verify_token(made.text, session.project) is None


async def _now(transaction: Transaction) -> int:
    return transaction.now


async def test_all_tokens_are_revoked_or_none(accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    for missing in (99, 0, -1, 1 << 63, 1 << 70):
        with pytest.raises(TokenNotFound):
            await accounts.revoke([made.token.id, missing], actor=ACTOR)
    assert (await accounts.tokens())[0] == [made.token]


async def test_the_use_of_a_token_is_recorded(session: StoreSession, accounts: AccountService) -> None:
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    found = await accounts.verify_token(made.text, session.project)
    assert found is not None
    assert found.is_use_due
    await accounts.record_use(made.token.id)
    again = await accounts.verify_token(made.text, session.project)
    assert again is not None
    assert not again.is_use_due
    assert again.token.used_at is not None
    await accounts.record_use(99)


async def test_only_members_can_see_a_project_with_members(
    session: StoreSession, accounts: AccountService
) -> None:
    for name in ("alice", "bob", "carol"):
        await accounts.add_user(name, actor=ACTOR)
    project = await session.workspace.projects.create("team", actor=ACTOR)

    async def role(name: str) -> str | None:
        principal = await accounts.external_principal(name, "write", project.id)
        assert principal is not None
        return principal.role

    async def hidden(name: str) -> set[int]:
        return await session.read(lambda transaction: transaction.accounts.projects_hidden_from(name))

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


async def test_missing_users_projects_and_members_are_reported(accounts: AccountService) -> None:
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


async def test_an_external_issuer_cannot_authenticate_disabled_users_or_the_default_user(
    session: StoreSession, accounts: AccountService
) -> None:
    assert await accounts.external_principal("auth0|7", "read", session.project) == Principal(
        "auth0|7", "read", "write"
    )
    assert await accounts.external_principal("dev-user", "admin", session.project) is None
    assert await accounts.external_principal("DEV-user", "admin", session.project) is None
    await accounts.add_user("alice", actor=ACTOR)
    assert await accounts.external_principal("Alice", "admin", session.project) is None
    await accounts.disable("alice", actor=ACTOR)
    assert await accounts.external_principal("alice", "admin", session.project) is None
    await accounts.add_user("dev-user", actor=ACTOR)
    assert await accounts.external_principal("dev-user", "read", session.project) is not None


async def test_writes_are_recorded_as_account_events_but_not_in_the_change_log(
    session: StoreSession, accounts: AccountService
) -> None:
    before = await session.newest_change()
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
        ("owner", "project.share", "alice", f"{session.project} read"),
        ("owner", "project.unshare", "alice", f"{session.project}"),
        ("somebody", "token.revoke", "alice", token),
        ("somebody", "user.disable", "alice", ""),
        ("owner", "user.enable", "alice", ""),
    ]
    assert all(event.at > 0 for event in noted)
    assert await accounts.events(2) == noted[:2]
    assert await session.newest_change() == before


async def test_other_processes_see_account_changes(
    session: StoreSession, open_store: OpenStore, accounts: AccountService
) -> None:
    other = Workspace(await open_store()).accounts
    await accounts.add_user("alice", actor=ACTOR)
    made = await accounts.create_token("alice", "write", actor=ACTOR)
    assert await other.verify_token(made.text, session.project) is not None
    await other.revoke([made.token.id], actor=ACTOR)
    assert await accounts.verify_token(made.text, session.project) is None


async def test_a_failed_account_transaction_is_rolled_back(
    session: StoreSession, accounts: AccountService
) -> None:
    await accounts.add_user("alice", actor=ACTOR)

    async def work(transaction: Transaction) -> None:
        (user,) = await transaction.accounts.users()
        await transaction.accounts.put_member(session.project, user.name, "read")
        await transaction.accounts.add_event(AccountEvent(at=1, actor="x", action="x", user="alice"))
        raise LookupError

    with pytest.raises(LookupError):
        await session.write(work)
    assert await accounts.members("default") == []
    assert len(await accounts.events(10)) == 1


async def test_the_change_log_can_be_limited_to_the_tasks_of_one_user(session: StoreSession) -> None:
    await session.task("Mine")
    mine = session.caller.user

    async def page(user: str | None, **more: object) -> list[str]:
        query = replace(ChangeQuery(project=session.project, kind="task", user=user), **more)
        found = await session.read(lambda transaction: transaction.changes.page(query))
        return [change.entity for change in found]

    (number,) = await page(mine)
    assert await page(None) == await page(mine, entity=number) == [number]
    assert await page("somebody") == await page("somebody", entity=number) == []
    assert await page("somebody", kind=None) != []
