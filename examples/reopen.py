"""Open stored results again: look at them, draw them, go on from them.

Run: python examples/reopen.py
"""

import airpass

design = airpass.design(airpass.Scenario.paper(seed=5))
design.save("design.json")
same = airpass.load("design.json")
assert (same.beam == design.beam).all()
print(same)
print(same.to_frame().head())
same.plot("room.pdf")

run = airpass.train(same, rounds=6, options=airpass.TrainOptions(evaluate_every=2))
run.save("training.json")
again = airpass.load("training.json")[0]
print(again.to_frame()[["round", "test_accuracy", "measured_sdr_db", "largest_power"]])
again.plot("curves.pdf")
