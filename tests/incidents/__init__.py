"""What went wrong elsewhere, as scenarios on the real ledger: one file per incident, named by its id.

Each file tells what happened in one line, names its *kind*, and says where our rules decide otherwise than
the report asked. It tests the kind: the example, its variants and its neighbours.

    python -m pytest tests/incidents --collect-only -q      # the list, by id

`scene.py` holds the words of the scenarios, `aftermath.py` what must hold after each, `doors.py` the ways in.
"""

from __future__ import annotations

from collections.abc import Mapping

INCIDENTS: Mapping[str, str] = {
    "r01": "the same call under two names",
    "r02": "one name for different things",
    "r04": "content compared after state",
    "r06": "a repeat that is not later but at once",
    "r08": "a token one layer reads and the next cannot keep",
    "r10": "hidden at one exit and open at another",
    "r13": "the same content told again with other words around it",
    "r15": "a fact that is early, acknowledged and dropped",
    "r17": "a hash over something that does not survive being kept",
    "r19": "a document that means one thing to who checks and another to who acts",
    "r21": "text that means the same and is not",
    "r23": "content that changes although what is meant does not",
    "r24": "the compared thing is less than the approved thing",
    "r26": "a late word about something that has ended",
    "r28": "order of arrival, trusted",
    "r30": "an answer that means: not known yet",
    "r32": "withdrawing what may be under way",
    "r34": "a stored sum that forgets a summand",
    "r35": "a look-up that is too early, believed",
    "r36": 'an answer that says nothing, read as "it is not there"',
    "r38": "a search that ended before its end",
    "r39": "two answers to a question that has one",
    "r41": "a name that means something else by now",
    "r43": "an old answer given again, counted as news",
    "r45": "the absence of an answer, taken for an answer",
    "r47": "a second send decided by who cannot know what became of the first",
    "r49": "a caller that calls twice",
    "r50": "a permission that is not used up",
    "r51": "a permission for one thing, spent on another",
    "r52": "answers told apart by a name that is not unique",
    "r54": "a permission that outlives what replaced its subject",
    "r56": "a permission bound to what does not matter",
    "r57": "a right that was asked for once",
    "r58": "an end that only a sweeper knows",
    "r60": "an effect whose only trace appears late",
    "r62": "a repetition from outside, which looks like something new",
    "r65": "an answer that sends elsewhere, taken for receipt",
    "r67": "one that is slow, in a line where everybody stands",
    "r69": "two who take the same work, and a mark without the deed",
    "r71": "a message trusted to arrive",
    "r72": "a reader that only looks ahead",
    "r73": "old news that arrives after the new",
    "r75": "a signature over something made again",
    "r78": "an address that means another place once it is used",
    "r80": "a mark that is there before what it stands for",
    "r82": "one fact in two places, each sure it is the first",
    "r83": "one person's press counted twice",
    "r84": "two contrary decisions of which both seem to count",
    "r85": "an answer for a whole page, put into a part of one",
    "r86": "a form whose secret is older than the session",
    "r88": "old news over new, and a poll that takes what is typed",
    "r91": "a person reads one thing and the machine another",
    "r93": "a deadline that only some of the parts know",
    "r95": "a right that stays when its object is gone",
    "r97": "one question with several answers",
    "r99": "authority asked once and used later",
    "r101": "a name looked for in the whole world instead of behind the wall",
    "r104": "two parts of one system that each begin the same work",
    "r106": "work that waits because of a lock",
    "r108": "a queue that gets slower with everything it ever did",
    "r110": "a page whose cost is that of everything that ever happened",
    "r112": "work released faster than it is taken",
    "r114": "trusting a queue to run something once",
    "r117": "an acknowledgement that is lost, taken for work that was not done",
    "r119": "silence taken for death",
    "r121": "a memory older than the facts",
    "r123": "a lock without an end, or with one that is too near",
    "r125": "an error after success taken for a failure of what succeeded",
    "r127": "a memory cut off before the facts",
    "r130": "history that somebody could change",
}
"""Every incident that has a file here, and the kind it stands for."""
