-- Times are microseconds since 1970, UTC. Ids and numbers are never reused after deletion: the number of a prompt
-- or resource is the `seq` of the change that created it. Texts are sorted by their bytes, as on SQLite.

CREATE TABLE projects (
    id         bigint PRIMARY KEY,
    name       text   COLLATE "C" NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version    bigint NOT NULL
);

-- The `folded_...` columns hold the case-folded text that searches compare, where lower() in the collation "C" gives
-- something else; otherwise NULL.

CREATE TABLE prompts (
    number         bigint PRIMARY KEY,
    id             text   COLLATE "C" NOT NULL UNIQUE,
    project        bigint NOT NULL REFERENCES projects (id),
    name           text   COLLATE "C" NOT NULL,
    title          text   COLLATE "C" NOT NULL,
    description    text   COLLATE "C",
    content        text   COLLATE "C" NOT NULL,
    tags           text[] COLLATE "C" NOT NULL,
    arguments      text   COLLATE "C" NOT NULL,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    version        bigint NOT NULL,
    folded_title   text   COLLATE "C",
    folded_content text   COLLATE "C"
);

CREATE UNIQUE INDEX prompts_by_name ON prompts (project, name);
CREATE UNIQUE INDEX prompts_by_title ON prompts (project, title);
CREATE INDEX prompts_in_order ON prompts (project, number);
CREATE INDEX prompts_by_update ON prompts (project, updated_at, number);
CREATE INDEX prompts_by_tag ON prompts USING gin (tags);

-- The contents of all current and past resources, each stored once.
CREATE TABLE contents (
    sha256 text  COLLATE "C" PRIMARY KEY,
    bytes  bytea NOT NULL
);

CREATE TABLE resources (
    number         bigint  PRIMARY KEY,
    id             text    COLLATE "C" NOT NULL UNIQUE,
    project        bigint  NOT NULL REFERENCES projects (id),
    name           text    COLLATE "C" NOT NULL,
    uri            text    COLLATE "C" NOT NULL,
    -- A hash of the URI, which can be too long for an index.
    uri_digest     bytea   NOT NULL,
    title          text    COLLATE "C",
    description    text    COLLATE "C",
    mime_type      text    COLLATE "C" NOT NULL,
    is_text        boolean NOT NULL,
    is_template    boolean NOT NULL,
    sha256         text    COLLATE "C" NOT NULL REFERENCES contents (sha256),
    size           bigint  NOT NULL,
    created_at     bigint  NOT NULL,
    updated_at     bigint  NOT NULL,
    version        bigint  NOT NULL,
    folded_title   text    COLLATE "C",
    folded_content text    COLLATE "C",
    UNIQUE (project, name),
    UNIQUE (project, uri_digest)
);

CREATE INDEX resources_by_number ON resources (project, is_template, number);

CREATE TABLE tasks (
    id            bigint PRIMARY KEY,
    "user"        text   COLLATE "C" NOT NULL,
    title         text   COLLATE "C" NOT NULL,
    project       text   COLLATE "C",
    priority      bigint NOT NULL,
    energy        text   COLLATE "C" NOT NULL,
    time_estimate text   COLLATE "C" NOT NULL,
    notes         text   COLLATE "C",
    due_date      text   COLLATE "C",
    completed_at  bigint,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    version       bigint NOT NULL,
    folded_title  text   COLLATE "C",
    folded_notes  text   COLLATE "C"
);

CREATE INDEX tasks_in_order ON tasks ("user", priority DESC, id, completed_at);
CREATE INDEX tasks_by_project ON tasks ("user", project, priority DESC, id, completed_at);

-- The last number assigned in each table whose numbers are not those of changes.
CREATE TABLE counters (
    name text   COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
) WITH (fillfactor = 20);

INSERT INTO counters VALUES ('projects', 0), ('tasks', 0);

-- The change log: every write, in the transaction of that write. `batch` is the first change of the same use case.
-- Writers hold a lock, so `seq` has no gaps and is committed in order. Rows are never deleted.
CREATE TABLE changes (
    seq     bigint PRIMARY KEY,
    batch   bigint NOT NULL,
    at      bigint NOT NULL,
    actor   text   COLLATE "C" NOT NULL,
    action  text   COLLATE "C" NOT NULL CHECK (action IN ('create', 'update', 'delete', 'restore')),
    kind    text   COLLATE "C" NOT NULL CHECK (kind IN ('project', 'prompt', 'resource', 'task')),
    entity  text   COLLATE "C" NOT NULL,
    project bigint,
    before  text   COLLATE "C",
    after   text   COLLATE "C",
    CHECK (before IS NOT NULL OR after IS NOT NULL)
);

CREATE INDEX changes_by_entity ON changes (kind, entity, seq);

-- The last commit of each writer. After losing the connection during COMMIT, a writer looks here for the outcome.
CREATE TABLE writers (
    id   uuid   PRIMARY KEY,
    last bigint NOT NULL,
    at   bigint NOT NULL
) WITH (fillfactor = 20);
