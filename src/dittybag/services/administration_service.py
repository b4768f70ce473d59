"""Administration of users, tokens and projects on behalf of a caller.

The owner of the machine and tokens with the admin scope may administer what they can see. Everybody else sees
and revokes their own tokens.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import Member, Role, Scope, Token, User
from dittybag.domain.changes import Change
from dittybag.domain.errors import NotAllowed, ProjectNotFound, TokenNotFound
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.services.account_service import AccountService, NewToken
from dittybag.services.caller import Caller
from dittybag.services.history_service import HistoryService, UndoSelection
from dittybag.services.project_service import ProjectService


def can_administer(caller: Caller) -> bool:
    """Whether the caller may administer users, tokens and projects."""
    return caller.principal is None or caller.principal.has("admin")


def require_admin(caller: Caller) -> None:
    """Raise `NotAllowed` unless the caller may administer."""
    if not can_administer(caller):
        raise NotAllowed("Only the owner of this machine and tokens with the admin scope may do this")


def _as_owner(caller: Caller) -> Caller:
    """Return a caller with the same name in the change log, who may do everything."""
    return replace(caller, principal=None)


class Accounts(Struct, frozen=True):
    """The users and tokens that a caller may see."""

    #: Only for those who may administer.
    users: list[User]
    #: Tokens that are not revoked, the newest first.
    tokens: list[Token]


class AdministrationService:
    """Checks the caller, and passes the work on to the services of accounts and projects."""

    def __init__(self, accounts: AccountService, projects: ProjectService, history: HistoryService) -> None:
        self._accounts = accounts
        self._projects = projects
        self._history = history

    # Users and tokens

    async def accounts(self, caller: Caller) -> Accounts:
        """Return all users and tokens, or those of the caller."""
        if can_administer(caller):
            tokens, users = await self._accounts.tokens()
        elif caller.user in {user.name for user in await self._accounts.users()}:
            tokens, _ = await self._accounts.tokens(caller.user)
            users = []
        else:
            # An OAuth user without an account has no tokens of ours.
            tokens, users = [], []
        valid = [token for token in tokens if token.revoked_at is None]
        return Accounts(users, sorted(valid, key=lambda token: token.id, reverse=True))

    async def add_user(self, caller: Caller, name: str) -> User:
        require_admin(caller)
        return await self._accounts.add_user(name, actor=caller.actor)

    async def disable_user(self, caller: Caller, name: str) -> tuple[User, list[Token]]:
        """Disable a user and revoke their tokens. Nobody can disable themselves."""
        require_admin(caller)
        if caller.principal is not None and caller.user.lower() == name.lower():
            raise NotAllowed("You cannot disable yourself; another admin can")
        return await self._accounts.disable(name, actor=caller.actor)

    async def enable_user(self, caller: Caller, name: str) -> User:
        require_admin(caller)
        return await self._accounts.enable(name, actor=caller.actor)

    async def create_token(
        self, caller: Caller, user: str, scope: Scope, *, label: str = "", expires_at: int | None = None
    ) -> NewToken:
        require_admin(caller)
        return await self._accounts.create_token(
            user, scope, actor=caller.actor, label=label, expires_at=expires_at
        )

    async def revoke_token(self, caller: Caller, id: int) -> Token:
        """Revoke a token. Without the admin scope, only those of the caller exist."""
        if not can_administer(caller) and id not in {
            token.id for token in (await self.accounts(caller)).tokens
        }:
            raise TokenNotFound(id)
        [token] = await self._accounts.revoke([id], actor=caller.actor)
        return token

    # Projects

    async def rename_project(self, caller: Caller, name: str, new_name: str) -> Project:
        await self._require_project(caller, name)
        return await self._projects.rename(name, new_name, actor=caller.actor)

    async def delete_project(self, caller: Caller, name: str) -> Project:
        await self._require_project(caller, name)
        return await self._projects.delete(name, actor=caller.actor)

    async def deletion_of_project(self, caller: Caller, id: int) -> Change | None:
        """Return the change that deleted a project, or `None` if the caller could not see it or it exists."""
        require_admin(caller)
        if caller.principal is not None and await self._accounts.role(caller.user, id) is None:
            return None
        query = ChangeQuery(kind="project", entity=str(id), limit=1)
        latest = next(iter(await self._history.page(_as_owner(caller), query)), None)
        return latest if latest is not None and latest.after is None and latest.purged is None else None

    async def restore_project(self, caller: Caller, id: int) -> Change:
        """Undo the deletion of a project with what it contained. Raises `ProjectNotFound`."""
        deletion = await self.deletion_of_project(caller, id)
        if deletion is None:
            raise ProjectNotFound(str(id))
        await self._history.undo(_as_owner(caller), UndoSelection(seq=deletion.seq))
        return deletion

    async def members(self, caller: Caller, name: str) -> list[Member]:
        """Return the members of a project; none if everybody sees it."""
        await self._require_project(caller, name)
        return await self._accounts.members(name)

    async def share_project(self, caller: Caller, name: str, user: str, role: Role) -> list[Member]:
        await self._require_project(caller, name)
        return await self._accounts.share(name, user, role, actor=caller.actor)

    async def unshare_project(
        self, caller: Caller, name: str, user: str, *, to_all: bool = False
    ) -> list[Member]:
        await self._require_project(caller, name)
        return await self._accounts.unshare(name, user, actor=caller.actor, to_all=to_all)

    async def _require_project(self, caller: Caller, name: str) -> None:
        """Raise `NotAllowed`, or `ProjectNotFound` if the caller cannot see the project."""
        require_admin(caller)
        await self._projects.find_visible(caller, name)
