"""The paper's figures 2 to 9 and table I, a file each."""
