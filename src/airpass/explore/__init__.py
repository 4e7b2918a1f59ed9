"""The explorer: a page in the browser in which a receiver can be changed by hand.

The page sends its whole state with every request (`state`), so that the server keeps none. Quick answers are
computed by the server (`server`), long jobs by a child process per page (`jobs`, `worker`).
"""
