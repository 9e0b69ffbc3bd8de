; Not yet written.
