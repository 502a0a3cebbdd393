"""What all tables share: one collection, names for keys and indexes, the types of columns."""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, MetaData, Text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Moment = BigInteger
Json = Text
# SQLite numbers rows by itself only for INTEGER keys; PostgreSQL should have the wide type.
RowId = BigInteger().with_variant(Integer, "sqlite")
