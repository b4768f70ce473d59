-- The first start of the database container runs this as the superuser. An ordinary role, because row-level security
-- does not hold for superusers. Nobody else gets a password: as postgres, connect inside the container.
\set password `cat /run/secrets/database_password`
CREATE ROLE dittybag LOGIN PASSWORD :'password';
CREATE DATABASE dittybag OWNER dittybag ENCODING 'UTF8' TEMPLATE template0;
ALTER ROLE postgres PASSWORD NULL;
