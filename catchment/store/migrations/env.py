"""Run by Alembic, inside the transaction and on the connection that `catchment.store.opening` gives it."""

from alembic import context

from catchment.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
