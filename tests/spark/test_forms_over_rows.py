"""Forms of SQL that are computed by operators of their own answer on Spark as DuckDB does over all rows at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.oracle.answer import connection
from tests.oracle.arrival import arrive
from tests.property.test_sql_forms import CUMULATED, LIST_FORMS, OVER_FORMS, _rows, drawn, with_lists
from tests.spark.drive import Place, finish, job, read_all

FORMS = {"over": OVER_FORMS, "lists": LIST_FORMS, "windows that cumulate": CUMULATED}


@pytest.mark.parametrize("forms", FORMS)
def test_forms(spark: SparkSession, tmp_path: Path, forms: str) -> None:
    rng, place = Random(7), Place(tmp_path)
    asked = {name: draw(rng) for name, draw in FORMS[forms].items()}
    declared, steps = with_lists(rng, *drawn(rng))
    for first, last in ((0, len(steps) // 2), (len(steps) // 2, len(steps))):
        for number in range(first, last):
            tables = {spec.name: steps[number].get(spec.name, spec.schema.empty_table()) for spec in declared}
            place.feed_together(number, tables)
        finish(job(spark, place, declared, {name: cql for name, (cql, _) in asked.items()}, lanes=2))
    for name, rows in arrive(declared, steps, ()).admitted.items():
        connection().register(name, rows)
    for name, (cql, sql) in asked.items():
        expected = Counter(_rows(connection().sql(sql).to_arrow_table()))
        found: pa.Table = read_all(place.answers(name))
        assert expected and Counter(_rows(found)) == expected, f"{name}: {cql}"
