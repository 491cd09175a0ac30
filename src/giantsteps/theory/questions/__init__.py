"""The questions that the theory answers, one module per question."""
