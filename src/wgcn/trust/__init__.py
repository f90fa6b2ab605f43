"""When to trust an answer: accuracy, abstention, sets of labels, texts out of scope."""
