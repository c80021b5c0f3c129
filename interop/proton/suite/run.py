"""Runs all scenarios and prints one JSON object per line and scenario as each ends.

The keys are "scenario", "result" (pass, fail or skip) and "text", which holds the
traceback or the reason.
"""

import json
import pathlib
import sys
import unittest


class Report(unittest.TestResult):
    """Collects what one scenario and its subtests say, and prints it at its end."""

    def startTest(self, test):
        super().startTest(test)
        self.result, self.texts = "pass", []

    def stopTest(self, test):
        super().stopTest(test)
        line = {"scenario": test.id(), "result": self.result, "text": "\n".join(self.texts)}
        print(json.dumps(line), flush=True)

    def failed(self, test, err):
        self.result = "fail"
        self.texts.append("%s\n%s" % (test, self._exc_info_to_string(err, test)))

    def addError(self, test, err):
        super().addError(test, err)
        if not isinstance(test, unittest.TestCase):  # a module that can't be imported, a failed setUpClass
            print(json.dumps({"scenario": str(test), "result": "fail", "text": self._exc_info_to_string(err, test)}), flush=True)
            return
        self.failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.result = "skip"
        self.texts.append(reason)


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    loader = unittest.TestLoader()
    loader.testNamePatterns = ["*%s*" % name for name in sys.argv[1:]] or None
    report = Report()
    loader.discover(str(here), pattern="test_*.py").run(report)
    sys.exit(0 if report.wasSuccessful() and report.testsRun else 1)
