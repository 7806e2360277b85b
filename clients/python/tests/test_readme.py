"""The examples of the README work, one after the other."""

import os
import re
import unittest

from support import PACKAGE, URL


class Readme(unittest.TestCase):
    def test_its_examples(self):
        with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
            examples = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        self.assertGreater(len(examples), 4)
        said = []
        names = {"print": lambda *words: said.append(words)}
        for example in examples:
            exec(compile(example.replace("http://127.0.0.1:8080", URL), "README.md", "exec"), names)
        names["client"].close()
        self.assertEqual(said, [("confirmed", 13000), ("seat_taken", ["Stalls-A-7"]), ("held",), ("seats",), (True,)])


if __name__ == "__main__":
    unittest.main()
