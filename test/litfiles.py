"""The lit test format: shell tests, of which a file is one only if it says what to run. A module of its own, since lit hands
the format to other processes, which must be able to import it."""
import lit.formats


def runs(test):
    with open(test.getSourcePath(), "rb") as file:
        return b"RUN:" in file.read()


class FilesThatRun(lit.formats.ShTest):
    def getTestsForPath(self, *arguments):
        return filter(runs, super().getTestsForPath(*arguments))

    def getTestsInDirectory(self, *arguments):
        return filter(runs, super().getTestsInDirectory(*arguments))
