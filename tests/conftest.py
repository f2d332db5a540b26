"""What every test may ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.engines.engine import Engine
from tests.engines import NAMES, Engines

collect_ignore = ["dags"]  # they run in Airflow's environment
LONGEST = (
    "test_airflow",
    "test_crashes",
    "test_night",
    "test_board_night",
    "test_cluster",
    "test_spark_engine",
    "test_board_close",
    "test_board_bans",
    "test_skew_and_spill",
    "test_timezones",
    "test_demo",
    "test_connect",
    "test_board_commands",
    "test_board_crashes",
    "test_football",
    "test_online_retail",
    "test_printed_commands",
    "test_store",
    "test_engine_forms",
    "test_store_interop",
)
"""Files that take longest, in this order; begun last, one of them would be waited for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, the others as they were found."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh DAYBREAK_HOME."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("DAYBREAK_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Engines by name, shared by the whole run; asking for one makes it the one that frames are built for."""
    found = Engines(tmp_path_factory.mktemp("engines"))
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def _plans(request: pytest.FixtureRequest, engines: Engines) -> None:
    """Tests of what engines compute see Spark's plans compiled, as users do; whole nights of few rows need not."""
    engines.is_compiled = "laws" in request.path.parts or request.path.stem in ("test_engine_forms", "test_plans")


@pytest.fixture
def sail_engine(engines: Engines) -> Engine:
    """The shared Sail engine."""
    return engines["sail"]


@pytest.fixture
def spark_engine(engines: Engines) -> Engine:
    """The shared Apache Spark engine."""
    return engines["spark"]


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest, engines: Engines) -> Engine:
    """Each engine in turn."""
    return engines[request.param]
