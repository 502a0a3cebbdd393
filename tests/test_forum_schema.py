"""docs/forum-schema.md: each of its queries gives the fields that it promises, on a world that was captured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.store.items.deletion import remove_items
from tests.forum import ForumApp

PAGE = Path(__file__).parents[1] / "docs" / "forum-schema.md"
CHAPTERS = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]
QUERIES = {chapter.split()[0]: chapter.partition("```sql\n")[2].partition("```")[0] for chapter in CHAPTERS}
SPECIFICATION = Path(__file__).parents[2] / "shared" / "seeds" / "nga-forum-database.md"


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForumApp]:
    """A board with a thread that was edited, retitled, audited and repaired."""
    home = tmp_path_factory.mktemp("forum")
    forum = ForumApp(home, f"sqlite:///{home / 'catchment.db'}")
    thread = forum.board.thread(7, pages=1.5, title="Locks")
    forum.run()
    thread.title, thread.floors[3].text = "Bridges", "edited"
    forum.board.reply(thread)
    forum.run()
    ids = forum.app.store.threads.floor_ids("forum", "", "7", 0, 100)
    forum.app.store.database.write(lambda tx: remove_items(tx, [ids[5]]))
    forum.app.floor_audit().run("test", is_repairing=True)
    yield forum
    forum.close()


def test_there_is_a_query_for_each_of_the_twelve_tables() -> None:
    assert len(QUERIES) == 12


@pytest.mark.parametrize("table", QUERIES)
def test_a_query_runs_and_gives_the_fields_of_its_table(captured: ForumApp, table: str) -> None:
    rows = captured.app.store.database.read(lambda tx: tx.dicts(QUERIES[table]))
    if table not in ("thread_tags", "thread_tag_maps"):
        assert rows
    if rows and SPECIFICATION.exists():
        chapter = re.search(rf"### 4\.\d+ `{table}`.*?(?=\n### |\n## |\Z)", SPECIFICATION.read_text(), re.S)
        assert chapter
        fields = re.findall(r"^\| ([a-z]\w*) \| ", chapter[0], re.M)
        assert list(rows[0]) == fields
