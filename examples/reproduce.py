"""A figure of the paper at the smallest scale, with verdicts on the claims that it tests.

Run: python examples/reproduce.py
"""

import airpass

if __name__ == "__main__":  # workers import this file
    (figure,) = airpass.reproduce("fig9", scale="smoke", out="runs/paper")  # report=print names every trial
    for claim in figure.verdicts():
        print(claim.claim, claim.text)
        for part in claim.parts:
            print("   ", part.verdict, "|", part.what, "|", part.effect)
    print("page: runs/paper/fig9/report.html")
