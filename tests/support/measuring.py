"""Branch coverage of the processes that run tests, loaded by `check_all --all` as `-p tests.support.measuring`.

Each process leaves a file beside COVERAGE_FILE, which `coverage combine` joins. Workers, servers and programs
that tests start are not measured.
"""

from coverage import Coverage

running = Coverage(data_suffix=True)
running.start()


def pytest_unconfigure() -> None:
    running.stop()
    running.save()
