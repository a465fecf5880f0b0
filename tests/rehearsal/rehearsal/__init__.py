"""The rehearsal: a disposable node with a simulated GPU on which the whole chain is run for real."""
