import pathlib

import pytest

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures"


@pytest.fixture
def examples() -> pathlib.Path:
    return FIXTURES / "examples"


@pytest.fixture
def pt2() -> pathlib.Path:
    return FIXTURES / "pt2"


@pytest.fixture
def torchscript() -> pathlib.Path:
    return FIXTURES / "torchscript"
