"""The registry names every table that a module of the package makes, once."""

from importlib import import_module
from pkgutil import iter_modules

from daybreak.events import Kind
from lakehouse import tables as package
from lakehouse.tables import registry as tables
from lakehouse.tables.table import Table


def test_every_table_of_every_module_is_registered_under_its_name() -> None:
    modules = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    made = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Table)}
    assert {table.name: table for table in made.values()} == tables.TABLES
    assert len(made) == len(tables.TABLES)
    assert all(getattr(tables, name.upper()) is table for name, table in tables.TABLES.items())


def test_every_kind_of_event_has_its_table_and_every_such_table_its_kind() -> None:
    assert set(tables.EVENTS) == set(Kind)
    assert [tables.KINDS[table.name] for table in tables.EVENTS.values()] == list(tables.EVENTS)
    assert all(tables.EVENTS[kind].schema == kind.schema for kind in Kind)
