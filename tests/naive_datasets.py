"""Plain twins of what the data generators compute in compiled or vectorised form."""

from __future__ import annotations

import math


def card_history(time, card, amount, online, x, y, state):
    """`toprank.datasets.card_fraud.card_history`, one purchase at a time."""
    cards = {}
    for number, row in enumerate(state):
        names = ("last", "count_1h", "count_24h", "amount_24h", "mean", "online", "present")
        cards[number] = dict(zip(names, row[:7], strict=True)) | {"where": tuple(row[7:])}
    answers = []
    rows = zip(time, card, amount, online, zip(x, y, strict=True), strict=True)
    for t, c, paid, is_online, where in rows:
        past = cards[c]
        hours = (t - past["last"]) / 3600
        if not math.isnan(hours):
            past["count_1h"] *= math.exp(-hours)
            past["count_24h"] *= math.exp(-hours / 24)
            past["amount_24h"] *= math.exp(-hours / 24)
        answer = [hours, past["count_1h"], past["count_24h"], past["amount_24h"], past["mean"]]
        answer += [past["online"], math.nan, math.nan]
        if not is_online:
            answer[6] = math.dist(where, past["where"])
            answer[7] = (t - past["present"]) / 3600
            past["present"], past["where"] = t, tuple(where)
        past["last"] = t
        past["count_1h"] += 1
        past["count_24h"] += 1
        past["amount_24h"] += paid
        past["mean"] = 0.9 * past["mean"] + 0.1 * paid
        past["online"] = 0.9 * past["online"] + 0.1 * is_online
        answers.append(answer)
    return answers


def covered(tables, rule, examples):
    """Which examples a rule covers: try every binding of its variables, fact by fact."""
    facts = {name: [tuple(row) for row in table.to_numpy()] for name, table in tables.items()}

    def holds(body, binding):
        if not body:
            return True
        (name, arguments), rest = body[0], body[1:]
        for fact in facts[name]:
            wider = dict(binding)
            for argument, value in zip(arguments, fact, strict=True):
                expected = wider.setdefault(argument, value) if argument[0].isupper() else argument
                if expected != value:
                    break
            else:
                if holds(rest, wider):
                    return True
        return False

    variable = rule["head"][1][0]
    return [holds(rule["body"], {variable: example}) for example in examples]
