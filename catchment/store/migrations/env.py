"""Run by Alembic, inside the transaction and on the connection that `catchment.store.migrate` gives it."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
