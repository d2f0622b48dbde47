"""The words of the project as types. Imports nothing of ours: every stage speaks these.

span -> reading -> event -> finding -> incident -> golden task, with the catalogue, the
configuration, the errors and the messages that travel on the bus.
"""
