"""Which settings a Spark session gets, and where Delta's jars come from."""

from pathlib import Path

import pytest

from daybreak.settings import Spark
from lakehouse.engines import jars
from lakehouse.engines.spark import CATALOG, MEANING, own_conf, submitted_conf

HERE = Path("home/spark")


def conf(**settings: object) -> dict[str, str]:
    return own_conf(Spark.model_validate(settings), HERE, HERE / "tmp" / "1", [Path("a.jar"), Path("b.jar")])


def test_a_local_master_is_on_loopback_and_spills_into_the_home() -> None:
    made = conf(master="local[3]", driver_memory="5g")
    assert made["spark.master"] == "local[3]"
    assert made["spark.driver.host"] == made["spark.driver.bindAddress"] == "127.0.0.1"
    assert made["spark.local.dir"] == "home/spark/tmp/1"
    assert made["spark.sql.shuffle.partitions"] == "6"
    assert made["spark.driver.memory"] == "5g"
    assert made["spark.jars"] == "a.jar,b.jar"
    assert made.items() >= (MEANING | CATALOG).items()


def test_a_cluster_keeps_its_own_addresses_folders_and_partitions() -> None:
    made = conf(master="yarn")
    assert not {"spark.driver.host", "spark.local.dir", "spark.sql.shuffle.partitions"} & made.keys()
    assert conf(master="yarn", shuffle_partitions=400)["spark.sql.shuffle.partitions"] == "400"


def test_a_standalone_cluster_on_loopback_finds_the_driver_there() -> None:
    made = conf(master="spark://127.0.0.1:7077")
    assert made["spark.driver.host"] == "127.0.0.1"
    assert "spark.local.dir" not in made


def test_the_users_own_settings_win() -> None:
    made = conf(conf={"spark.master": "local[1]", "spark.sql.shuffle.partitions": "7", "spark.ui.enabled": "true"})
    assert (made["spark.master"], made["spark.sql.shuffle.partitions"]) == ("local[1]", "7")
    assert made["spark.ui.enabled"] == "true"


def test_spark_submit_keeps_master_memory_packages_and_tuning_but_not_the_meaning_of_rows() -> None:
    given = {"spark.master": "yarn", "spark.ui.enabled": "true", "spark.sql.session.timeZone": "Asia/Tokyo"}
    made = submitted_conf(Spark(driver_memory="9g"), given)
    assert not {"spark.master", "spark.driver.memory", "spark.jars", "spark.ui.enabled"} & made.keys()
    assert made["spark.sql.session.timeZone"] == "UTC"
    assert made["spark.databricks.delta.snapshotPartitions"] == "2"


def test_the_jars_are_kept_per_user_and_version_and_only_all_of_them_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cached() is None
    jars.folder().mkdir(parents=True)
    assert jars.cached() is None
    (jars.folder() / f"io.delta_delta-spark_4.2_2.13-{jars.DELTA}.jar").touch()
    (jars.folder() / "other.jar").touch()
    assert jars.cached() is None
    (jars.folder() / f"io.delta_delta-storage-{jars.DELTA}.jar").touch()
    assert jars.cached() == sorted(jars.folder().glob("io.delta*.jar"))
