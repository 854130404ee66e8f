"""The repository speaks of itself alone: no paths of the machine it was written on, no marks of unfinished work, no talk of who
wrote it. The words are put together here so that this file does not contain them."""
import re

from repo import conclude, files, read

FORBIDDEN = {
    r"(?<![\w.}/])/(?:" + "|".join(["wo" + "rk", "ho" + "me", "ro" + "ot", "t" + "mp"]) + r")\b/?[\w.]": "a path of some machine",
    r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK|XF" + r"AIL)\b": "a mark of unfinished work",
    r"(?i)\bis" + r"sue #?\d{1,2}\b": "a ticket's number",
    r"(?i)\bses" + r"sions?\b": "talk of who wrote it",
    r"(?i)\b(?:clau" + r"de|chat" + r"gpt|langu" + r"age model assistant)\b": "talk of who wrote it",
}

findings = []
for path in files():
    if "/corpus/" in path:
        continue
    for number, line in enumerate(read(path).splitlines(), 1):
        for pattern, why in FORBIDDEN.items():
            match = re.search(pattern, line)
            if match:
                findings.append(f"{path}:{number}: `{match.group(0)}` is {why}")
conclude("words that do not belong here", findings)
