"""Tests of the tree itself: names, imports, tables of decisions. They need no database either."""

from tests.pure.conftest import database as database
from tests.pure.conftest import no_window_begins as no_window_begins
from tests.pure.conftest import server as server
