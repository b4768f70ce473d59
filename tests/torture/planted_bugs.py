"""Known bugs, each as an edit of the source and the tests that must catch it. `plant.py` plants them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Bug(Struct, frozen=True):
    """A bug that the tests must catch."""

    name: str
    #: What a user would see.
    effect: str
    #: Files below `src/dittybag`, each with a text that occurs once and its replacement.
    edits: tuple[tuple[str, str, str], ...]
    tests: tuple[str, ...]


BUGS: Final = (
    # Durability and the change log
    Bug(
        "ack-before-commit",
        "A write is acknowledged before it is on disk, and lost by a kill.",
        (
            (
                "storage/sqlite/sqlite_writer.py",
                "            tables.queries.pending.write()\n",
                "            self._deliver(jobs)\n            tables.queries.pending.write()\n",
            ),
            (
                "storage/sqlite/sqlite_writer.py",
                "            self._deliver(jobs)\n            if self._tables is not None",
                "            if self._tables is not None",
            ),
        ),
        ("tests/torture/test_kills.py", "tests/contracts/test_interrupted_writes.py"),
    ),
    Bug(
        "synchronous-normal",
        "An acknowledged write is lost by a power failure.",
        (
            (
                "storage/sqlite/sqlite_connections.py",
                '"PRAGMA synchronous = FULL"',
                '"PRAGMA synchronous = NORMAL"',
            ),
        ),
        ("tests/storage/sqlite/test_concurrent_access.py",),
    ),
    Bug(
        "failed-job-fails-its-batch",
        "A write that fails also undoes writes of others that share its commit.",
        (
            (
                "storage/sqlite/sqlite_writer.py",
                "            # One job failed halfway. Run each in its own transaction.\n            for job in jobs:\n",
                "            for job in jobs[:1]:\n",
            ),
        ),
        ("tests/storage_contract/test_transactions.py",),
    ),
    Bug(
        "no-version-check",
        "Of two clients that change the same version, the second overwrites the first.",
        (
            (
                "storage/sql/entity_rows.py",
                'condition = f"{sql} AND version = ${len(values) + 2}"',
                'condition = f"{sql} AND version <= ${len(values) + 2} + 1"',
            ),
        ),
        ("tests/storage_contract/test_transactions.py",),
    ),
    Bug(
        "deletion-not-logged",
        "A deletion is not in the history and cannot be undone.",
        (
            (
                "storage/sql/sql_transaction.py",
                "        await self._append(change)\n        return after\n",
                '        if action != "delete":\n            await self._append(change)\n        return after\n',
            ),
        ),
        ("tests/storage_contract/test_random_operations.py", "tests/cli/test_history_and_undo.py"),
    ),
    Bug(
        "one-batch-per-change",
        "Undoing an operation on many items undoes only one of them.",
        (
            (
                "storage/sql/sql_transaction.py",
                "        self._batch = self._batch or seq\n",
                "        self._batch = seq\n",
            ),
        ),
        ("tests/storage_contract/test_transactions.py",),
    ),
    Bug(
        "no-advisory-lock",
        "Two servers on one PostgreSQL give two changes the same number, so that one of them fails.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "    PERFORM pg_advisory_xact_lock(lock_class, lock_key);\n",
                "",
            ),
        ),
        ("tests/storage/postgres/test_checked_writes.py", "tests/storage_contract/test_transactions.py"),
    ),
    Bug(
        "no-version-check-on-postgres",
        "Of two servers that change the same version of a task, the second overwrites the first.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "FROM json_populate_record(NULL::tasks, others::json))\n"
                "            WHERE id = row_number AND version = row_version;",
                "FROM json_populate_record(NULL::tasks, others::json))\n            WHERE id = row_number;",
            ),
        ),
        ("tests/storage/postgres/test_checked_writes.py",),
    ),
    Bug(
        "given-up-commit-made-late",
        "A write is done twice if PostgreSQL receives it after it was given up.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "    PERFORM record_commit(writer, commit_number, NULL);\n",
                "",
            ),
        ),
        ("tests/storage/postgres/test_connection_loss.py",),
    ),
    Bug(
        "call-repeated-after-lost-answer",
        "A write is done twice if the answer of PostgreSQL is lost.",
        (
            (
                "storage/postgres/commit_connection.py",
                "                made = await self._settle()\n",
                "                await self._settle()\n                made = None\n",
            ),
        ),
        ("tests/storage/postgres/test_connection_loss.py",),
    ),
    Bug(
        "call-repeated-in-doubt",
        "A write whose outcome cannot be known is repeated, and reported as not done.",
        (
            (
                "storage/postgres/commit_connection.py",
                "            except StorageUnsure as error:\n                problem = error\n",
                "",
            ),
        ),
        ("tests/storage/postgres/test_connection_loss.py",),
    ),
    Bug(
        "no-notification-of-a-call",
        "A client is not told of changes by another server on PostgreSQL.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "        PERFORM pg_notify(channel, last_seq::text);\n",
                "",
            ),
        ),
        ("tests/storage_contract/test_store_notifications.py",),
    ),
    Bug(
        "stale-project",
        "A server adds to a project that another server has renamed or deleted.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "WHERE read.id = known_projects[i] AND read.version = known_versions[i]);",
                "WHERE read.id = known_projects[i] OR true);",
            ),
        ),
        ("tests/storage/postgres/test_checked_writes.py",),
    ),
    Bug(
        "commit-repeated-after-lost-answer",
        "A write is done twice if the connection is lost while PostgreSQL commits.",
        (
            (
                "storage/postgres/postgres_writer.py",
                "            if await self._was_committed():\n                return\n",
                "            await self._was_committed()\n",
            ),
        ),
        ("tests/storage/postgres/test_connection_loss.py",),
    ),
    Bug(
        "cancelled-write-still-queued",
        "A cancelled write is executed although nobody waits for it.",
        (
            (
                "storage/sqlite/sqlite_writer.py",
                "        if job.abandoned:\n            # The caller was cancelled while this process waited for the lock.\n"
                "            return True\n",
                "",
            ),
            (
                "storage/sqlite/sqlite_writer.py",
                "self._run_jobs([job for job in jobs if not job.abandoned])",
                "self._run_jobs(jobs)",
            ),
        ),
        ("tests/storage/sqlite/test_cancellation.py", "tests/storage_contract/test_transactions.py"),
    ),
    # Notifications
    Bug(
        "lost-notification",
        "A client is not told of changes by another process after many changes at once.",
        (
            (
                "storage/sqlite/sqlite_change_feed.py",
                "self.behind = len(found) == MAX_CHANGES_PER_READ",
                "self.behind = False",
            ),
        ),
        ("tests/storage_contract/test_store_notifications.py",),
    ),
    Bug(
        "lost-notification-on-postgres",
        "A client is not told of changes by another server after many changes at once.",
        (
            (
                "storage/postgres/postgres_change_feed.py",
                "        self._seq = found[-1][0]\n",
                "        self._seq = found[-1][0] + 1\n",
            ),
        ),
        ("tests/storage_contract/test_store_notifications.py",),
    ),
    Bug(
        "stale-list-cache",
        "A list does not show a change of another process.",
        (
            (
                "storage/sqlite/sqlite_change_feed.py",
                "        if commits == self._commits and not self.behind:\n",
                "        if commits != self._commits and not self.behind:\n",
            ),
        ),
        (
            "tests/storage_contract/test_store_notifications.py",
            "tests/contracts/test_change_notifications.py",
        ),
    ),
    Bug(
        "unsubscribed-stream-notified",
        "A subscribed client gets no updates of a resource.",
        (
            (
                "protocol/subscriptions.py",
                "            if uri in stream.uris:\n",
                "            if uri not in stream.uris:\n",
            ),
        ),
        ("tests/protocol/test_engine_subscriptions.py",),
    ),
    # Undo
    Bug(
        "undo-forgets-tags",
        "Undoing a change of a prompt does not restore its tags.",
        (
            (
                "services/history_service.py",
                "    restored: Any = replace(wanted, version=last.version + 1)\n",
                "    restored: Any = replace(wanted, version=last.version + 1)\n"
                '    if hasattr(wanted, "tags"):\n        restored = replace(restored, tags=last.tags)\n',
            ),
        ),
        ("tests/storage_contract/test_history.py",),
    ),
    Bug(
        "undo-overwrites-silently",
        "Undo overwrites a change that was made after the plan was shown.",
        (
            (
                "services/history_service.py",
                "    if seen is not None and any(item.seq > seen for item in await _later_changes(transaction, changes)):\n"
                "        raise ChangedMeanwhile\n",
                "",
            ),
        ),
        ("tests/storage_contract/test_history_browsing.py",),
    ),
    Bug(
        "undo-of-others",
        "A user sees and undoes changes of the tasks of others.",
        (
            (
                "services/history_service.py",
                "    return isinstance(change.state, Task | Purged) and change.state.user == caller.user\n",
                "    return True\n",
            ),
        ),
        ("tests/accounts/test_service_permissions.py", "tests/accounts/test_permission_matrix.py"),
    ),
    # Access
    Bug(
        "missing-owner-filter",
        "A user reads a task of another user by its number.",
        (
            (
                "storage/sql/task_visibility.py",
                '    is_own = f"{table}{column} = {user}"\n',
                '    is_own = f"{user} = {user}"\n',
            ),
        ),
        ("tests/accounts/test_service_permissions.py", "tests/accounts/test_permission_matrix.py"),
    ),
    Bug(
        "read-only-token-writes",
        "A token with the read scope changes tasks.",
        (
            (
                "services/caller.py",
                "    if caller.principal is not None and not caller.principal.changes_own:\n",
                "    if caller.principal is not None and caller.principal.changes_own is None:\n",
            ),
        ),
        ("tests/accounts/test_service_permissions.py",),
    ),
    Bug(
        "reader-changes-project",
        "A member who may only read a project changes it.",
        (
            (
                "services/caller.py",
                "    if caller.principal is not None and not caller.principal.changes_project:\n",
                "    if caller.principal is not None and caller.principal.changes_project is None:\n",
            ),
        ),
        ("tests/accounts/test_service_permissions.py",),
    ),
    Bug(
        "disabled-user-admitted",
        "The token of a disabled user still works.",
        (
            (
                "services/account_service.py",
                "    if user is None or user.disabled_at is not None:\n        return None\n    role",
                "    if user is None:\n        return None\n    role",
            ),
        ),
        ("tests/storage_contract/test_accounts.py",),
    ),
    Bug(
        "expired-token-admitted",
        "A token works after its expiry date.",
        (
            (
                "services/account_service.py",
                "    if token is None or not token.is_valid(transaction.now):\n",
                "    if token is None or not token.is_valid(0):\n",
            ),
        ),
        ("tests/storage_contract/test_accounts.py",),
    ),
    Bug(
        "revoked-token-cached",
        "A revoked token works for minutes.",
        (("http/authentication.py", "CACHE_SECONDS: Final = 2.0", "CACHE_SECONDS: Final = 200.0"),),
        ("tests/accounts/test_token_authentication.py", "tests/accounts/test_stream_authentication.py"),
    ),
    Bug(
        "row-security-off",
        "A query that forgets its owner returns the rows of others on PostgreSQL.",
        (
            (
                "storage/postgres/row_security.py",
                'return "" if viewer is None else f"user:{viewer}"',
                'return ""',
            ),
        ),
        ("tests/accounts/test_row_security.py",),
    ),
    Bug(
        "statements-shared-through-a-pooler",
        "Through a pooler, statements that are planned for the operator are found by users.",
        (
            (
                "storage/postgres/postgres_connections.py",
                "        statement_cache_size=0,\n",
                "",
            ),
            (
                "storage/postgres/driver_connections.py",
                'self.prepare(query, name="")',
                'self.prepare(query, name=f"s{hash(query) % 10**9}")',
            ),
        ),
        ("tests/storage/postgres/test_pgbouncer.py",),
    ),
    Bug(
        "stale-replica",
        "A replica answers although it lacks changes.",
        (
            (
                "storage/postgres/read_replicas.py",
                "            self.seq >= others.seq\n",
                "            True\n",
            ),
        ),
        ("tests/storage/postgres/test_read_replicas.py",),
    ),
    Bug(
        "stale-members-on-replica",
        "A replica answers although it does not know that a member was removed.",
        (
            (
                "storage/postgres/read_replicas.py",
                "            and self.account_event >= others.account_event\n",
                "",
            ),
        ),
        ("tests/storage/postgres/test_read_replicas.py",),
    ),
    Bug(
        "any-audience",
        "An access token for another service is accepted.",
        (
            (
                "identity/token_claims.py",
                "settings.audience not in audiences",
                "not audiences",
            ),
        ),
        ("tests/identity/test_bad_tokens.py",),
    ),
    Bug(
        "any-host",
        "A web page reaches a local server by DNS rebinding.",
        (
            (
                "http/host_checks.py",
                'if _host_name(headers.joined(b"host")) not in self._hosts:',
                'if not headers.joined(b"host"):',
            ),
        ),
        ("tests/http/test_host_checks.py",),
    ),
    Bug(
        "any-origin",
        "A foreign web page sends requests to a local server.",
        (
            (
                "http/host_checks.py",
                "            if not is_local and origin",
                "            if is_local and origin",
            ),
        ),
        ("tests/http/test_host_checks.py",),
    ),
    # The web UI
    Bug(
        "unescaped-task-title",
        "The title of a task runs as a script in the browser.",
        (
            (
                "web/templates/tasks/task_card.html",
                'href="{{ base }}/{{ task.id }}">{{ task.label }}</a>\n',
                'href="{{ base }}/{{ task.id }}">{{ task.label|safe }}</a>\n',
            ),
        ),
        ("tests/e2e/test_script_injection.py",),
    ),
    Bug(
        "form-without-secret",
        "Another website submits forms of the web UI.",
        (
            (
                "web/app.py",
                "    if not is_own_form(request.session, secret_sent):\n",
                "    if secret_sent and not is_own_form(request.session, secret_sent):\n",
            ),
        ),
        ("tests/web",),
    ),
    # The protocol
    Bug(
        "cursor-of-another-list",
        "A cursor of one list is accepted by another one.",
        (("protocol/cursors.py", "    if written_for != method:\n", "    if not written_for:\n"),),
        ("tests/protocol/test_list_pages_and_completion.py", "tests/contracts/test_list_paging.py"),
    ),
    Bug(
        "unbounded-message",
        "A message of a million values blocks the server.",
        (
            (
                "protocol/frame_scan.py",
                "    if values > MAX_VALUES:\n",
                "    if values > 1000 * MAX_VALUES:\n",
            ),
        ),
        ("tests/contracts/test_expensive_messages.py",),
    ),
    # Libraries
    Bug(
        "link-out-of-library",
        "A link in a library reads a file outside of it.",
        (
            (
                "library/safe_folder.py",
                'return target[len(inside) :].replace(os.sep, "/") if target.startswith(inside) else None',
                "return os.path.relpath(target, root) if target.startswith(inside[:2]) else None",
            ),
            (
                "library/safe_folder.py",
                '        if any(part in ("", ".", "..") or',
                '        if any(part in ("", ".") or',
            ),
        ),
        ("tests/library/test_safe_folder.py",),
    ),
    Bug(
        "claimed-work-tree",
        "An unpacked folder reads and writes the project of a repository beside it.",
        (
            (
                "folders/repositories.py",
                "return top if top is not None and _leads_to(top, repository) else None",
                "return top",
            ),
        ),
        ("tests/folders/test_hostile_repositories.py",),
    ),
    Bug(
        "overwritten-library",
        "An update of a library overwrites edits.",
        (
            (
                "library/installer.py",
                "if not overwrite and digest_of(before) != record.digest:",
                "if not overwrite and not before:",
            ),
        ),
        ("tests/library/test_library_update.py",),
    ),
    Bug(
        "link-in-skill",
        "A link to a hidden file is served as a file of a skill.",
        (
            (
                "library/skill_folders.py",
                "        if file not in listing.links\n        and any(",
                "        if any(",
            ),
            (
                "library/skill_index.py",
                "root.read(file, FILE_BYTES, follow_links=False)",
                "root.read(file, FILE_BYTES)",
            ),
            (
                "library/skill_index.py",
                "            stamp = self.root.unlinked_stamp(file)",
                "            stamp = self.root.stamp(file)",
            ),
        ),
        ("tests/contracts/test_hostile_skills.py",),
    ),
    Bug(
        "mixed-skill-entry",
        "The front matter and the digest of a skill are from two versions of its file.",
        (
            (
                "library/skill_index.py",
                "            if any(file.path == SKILL_FILE and file.sha256 == header.file.sha256 for file in files):",
                "            if files:",
            ),
        ),
        ("tests/contracts/test_hostile_skills.py",),
    ),
    Bug(
        "unlimited-template-memory",
        "A template takes all memory.",
        (("library/render/resource_limits.py", "96 * 1024 * 1024", "96 * 1024 * 1024 * 1024"),),
        ("tests/library/render", "tests/torture/test_bombs.py"),
    ),
    Bug(
        "unlimited-template-time",
        "A template runs for ever.",
        (
            (
                "library/render/resource_limits.py",
                "    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)\n",
                "    signal.setitimer(signal.ITIMER_REAL, 1000 * DEADLINE_SECONDS)\n",
            ),
        ),
        ("tests/library/render",),
    ),
    # Files of others
    Bug(
        "disconnect-loses-text",
        "`disconnect` restores the copy of a client's file over later changes.",
        (
            (
                "clients/connector.py",
                "        if config_format.remove(connected, name) == after:\n",
                "        if connected:\n",
            ),
        ),
        ("tests/clients/test_config_file_edits.py", "tests/clients/test_json_format.py"),
    ),
    # The command line
    Bug(
        "control-characters-in-errors",
        "An error message with text of others controls the terminal.",
        (
            (
                "cli/error_output.py",
                '    printable = re.sub(_CONTROL, "\\N{REPLACEMENT CHARACTER}", message)\n',
                "    printable = message\n",
            ),
        ),
        ("tests/cli/test_commands.py", "tests/cli/test_prompt.py"),
    ),
    Bug(
        "conflict-exits-with-zero",
        "A script does not notice that a command found nothing.",
        (("cli/error_output.py", "    NOT_FOUND = 3\n", "    NOT_FOUND = 0\n"),),
        ("tests/cli/test_refusals.py",),
    ),
    # What agents read
    Bug(
        "binary-pieces-cannot-be-joined",
        "The pieces of a binary content are not valid base64 when they are joined.",
        (
            (
                "contracts/agent_read.py",
                "estimate_tokens(uri)) // 4 * 3\n",
                "estimate_tokens(uri)) // 4 * 3 - 1\n",
            ),
        ),
        ("tests/contracts/test_agent_tools.py",),
    ),
    Bug(
        "skill-replaced-by-resource",
        "A stored resource replaces a file of a skill.",
        (
            (
                "contracts/agent_read.py",
                "item = None if ref[: len(SCHEME)].lower() == SCHEME else await",
                "item = await",
            ),
        ),
        ("tests/contracts/test_agent_tools.py",),
    ),
    # Search
    Bug(
        "unescaped-pattern",
        "A search for a percent sign finds everything.",
        (("storage/sql/sql_driver.py", 'return f"%{escape_like(text)}%"', 'return f"%{text}%"'),),
        ("tests/storage_contract/test_text_search.py", "tests/storage_contract/test_resource_storage.py"),
    ),
    Bug(
        "completed-tasks-listed",
        "The list of open tasks shows completed ones.",
        (
            (
                "storage/sql/task_table.py",
                "        if query.completed is not None:\n",
                "        if query.completed:\n",
            ),
        ),
        ("tests/contracts/test_task_manager_contract.py", "tests/storage_contract/test_random_operations.py"),
    ),
    # Tasks of a team
    Bug(
        "fence-not-compared",
        "An agent that lost its claim overwrites the work of the next one.",
        (
            (
                "services/task_claims.py",
                "        if claim.fence == fence:\n",
                "        if claim.fence >= fence:\n",
            ),
        ),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "no-fence-needed",
        "An agent changes a task that another one holds.",
        (("services/task_claims.py", 'caller.interface != "mcp"', "caller.interface is not None"),),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "lapse-off-by-one",
        "At the moment when a claim lapses, two agents hold the task.",
        (("domain/claims.py", "return now < self.until", "return now <= self.until"),),
        ("tests/storage_contract/test_task_leases.py",),
    ),
    Bug(
        "claim-not-renewed",
        "An agent loses its task although it is writing to it.",
        (
            (
                "services/task_claims.py",
                "replace(claim, until=transaction.now + claim.lease)",
                "replace(claim, until=claim.until)",
            ),
        ),
        ("tests/storage_contract/test_task_leases.py",),
    ),
    Bug(
        "claim-survives-taking-away",
        "An agent still writes to a task that a person has taken away.",
        (
            (
                "storage/sqlite/migrations/0001_create.sql",
                "WHEN new.status <> 'doing' OR old.assignee IS NOT new.assignee BEGIN",
                "WHEN new.status IN ('done', 'dropped') BEGIN",
            ),
        ),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "parts-do-not-block",
        "A task is ready before its parts are done.",
        (
            (
                "storage/sqlite/migrations/0001_create.sql",
                "AFTER INSERT ON tasks BEGIN\n"
                "    INSERT OR IGNORE INTO task_edges SELECT new.id, value, 0 FROM json_each(new.blocked_by);\n"
                "    INSERT INTO task_edges SELECT new.parent, new.id, 1 WHERE new.parent IS NOT NULL;\n",
                "AFTER INSERT ON tasks BEGIN\n"
                "    INSERT OR IGNORE INTO task_edges SELECT new.id, value, 0 FROM json_each(new.blocked_by);\n",
            ),
        ),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "deleted-blocker-blocks",
        "A task waits for ever for one that was deleted.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "    IF was_open AND (moved OR NOT is_open) THEN\n",
                "    IF was_open AND (moved OR NOT is_open) AND TG_OP <> 'DELETE' THEN\n",
            ),
        ),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "cycle-through-a-parent",
        "A task and its part wait for each other, and neither is ever ready.",
        (
            (
                "services/task_edges.py",
                "    if parent is None or parent == task.parent:\n        return\n",
                "    if parent is None or task.id == 0 or parent == task.parent:\n        return\n",
            ),
        ),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "task-of-a-read-only-project-claimed",
        "A member who may only read claims a task.",
        (
            (
                "services/task_access.py",
                "        locked = await transaction.accounts.projects_locked_for(caller.user)\n",
                "        locked = await transaction.accounts.projects_hidden_from(caller.user)\n",
            ),
        ),
        ("tests/accounts/test_shared_tasks.py",),
    ),
    Bug(
        "assigned-task-claimed-by-others",
        "An agent takes a task that is assigned to somebody else.",
        (("storage/sql/claim_table.py", "{_ASSIGNEE} = {name}", "{name} = {name}"),),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "held-task-claimed",
        "Two agents that ask for a task by its number both get it.",
        (
            (
                "services/task_queue.py",
                "    if claim is not None and claim.is_live(transaction.now):\n        if not",
                "    if claim is not None and claim.is_live(transaction.now) and request.connection:\n        if not",
            ),
        ),
        ("tests/storage_contract/test_task_queue.py",),
    ),
    Bug(
        "released-task-stays-assigned",
        "Nobody else takes up a task that an agent gave back.",
        (
            (
                "services/task_queue.py",
                'status="todo", completed_at=None, assignee=None, **fields',
                'status="todo", completed_at=None, **fields',
            ),
        ),
        ("tests/storage_contract/test_task_leases.py",),
    ),
    Bug(
        "lapse-missed-while-looking",
        "A waiting call sleeps although a claim lapsed while it looked.",
        (
            (
                "services/task_waiting.py",
                "            lapse = await self._next_lapse(caller)\n",
                "",
            ),
            (
                "services/task_waiting.py",
                "            # Until a task changes",
                "            lapse = await self._next_lapse(caller)\n            # Until a task changes",
            ),
        ),
        ("tests/storage_contract/test_task_waiting.py",),
    ),
    Bug(
        "cancelled-claim-kept",
        "A cancelled call leaves a task claimed by nobody.",
        (
            (
                "services/task_waiting.py",
                "            await _complete(self._release(caller, claiming))\n",
                "            await claiming\n",
            ),
        ),
        ("tests/storage_contract/test_task_waiting.py",),
    ),
    Bug(
        "policy-of-tasks-too-wide",
        "Row-level security shows the tasks of all projects to everybody.",
        (
            (
                "storage/postgres/migrations/0001_create.sql",
                "('tasks', 'project_id', 'project_id IS NOT NULL AND')",
                "('tasks', 'project_id', 'project_id IS NOT NULL OR')",
            ),
        ),
        ("tests/accounts/test_shared_tasks.py",),
    ),
    Bug(
        "task-that-left-is-restored",
        "A member of a project takes back a task that is somebody else's alone now.",
        (
            (
                "services/history_service.py",
                "    await _require_task_access(transaction, caller, change, latest, wanted)\n",
                "",
            ),
        ),
        ("tests/accounts/test_shared_tasks.py",),
    ),
)
