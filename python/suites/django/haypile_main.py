"""Runs haypile_suite.py and writes its results to the file of the first argument."""

import json
import pathlib
import sys
import unittest

import django
from django.test.runner import DiscoverRunner


class Result(unittest.TextTestResult):
    """Counts tests by name."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.passed = []
        self.broken = set()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(name_of(test))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.broken.add(name_of(test))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.broken.add(name_of(test))

    def addError(self, test, error):
        super().addError(test, error)
        self.broken.add(name_of(test))


class Runner(DiscoverRunner):
    """Django's runner, with these results."""

    def get_test_runner_kwargs(self):
        return {**super().get_test_runner_kwargs(), "resultclass": Result}

    def suite_result(self, suite, result, **_named):
        return result


def name_of(test):
    return ".".join(test.id().split(".")[-2:]) if hasattr(test, "id") else str(test)


def main():
    django.setup()
    import haypile_suite

    classes = [haypile_suite.FileTests, haypile_suite.MemoryTests, haypile_suite.AsyncFileTests,
               haypile_suite.AsyncTests]
    runner = Runner(verbosity=1, interactive=False)
    skipped = []
    for test in classes:
        for name in unittest.defaultTestLoader.getTestCaseNames(test):
            reason = haypile_suite.NOT_APPLICABLE.get(f"{test.__name__}.{name}")
            if reason is not None:
                skipped.append([f"{test.__name__}.{name}", reason])
                setattr(test, name, unittest.skip(reason)(lambda self: None))
    result = runner.run_tests([f"haypile_suite.{test.__name__}" for test in classes])
    known = {name for name, _ in skipped}
    skipped += [[name_of(test), reason] for test, reason in result.skipped if name_of(test) not in known]
    passed = len(set(result.passed) - result.broken)
    found = {"passed": passed, "failed": len(result.broken), "not_applicable": skipped}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(found))
    return 1 if result.broken else 0


if __name__ == "__main__":
    sys.exit(main())
