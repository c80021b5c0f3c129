"""Runs what the command line asks for and prints JSON objects, as interop/foreign says.

Those of scenarios have the keys "scenario", "result" (pass, fail or skip) and "text",
which holds the traceback or the reason.
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


def scenarios(names, files="test_*.py"):
    here = pathlib.Path(__file__).parent
    loader = unittest.TestLoader()
    loader.testNamePatterns = ["*%s*" % name for name in names] or None
    report = Report()
    loader.discover(str(here), pattern=files).run(report)
    return report.wasSuccessful() and report.testsRun


if __name__ == "__main__":
    what, args = sys.argv[1], sys.argv[2:]
    if what == "scenarios":
        good = scenarios(args)
    elif what == "restarts":
        good = scenarios(args, "restart_*.py")
    else:
        import exchange
        good = exchange.write(args[0]) if what == "write" else exchange.read(args[0], int(args[1]))
    sys.exit(0 if good else 1)
