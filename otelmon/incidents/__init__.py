"""Incidents: findings of one problem grouped for a person."""
