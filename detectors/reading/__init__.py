"""Reads curves as a careful person does: one kernel that measures them, and claims as score cards."""
