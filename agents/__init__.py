"""The execution of runs: requests and their intake, workers, runners, tools and protocols."""
