"""Reinforcement learning: language-model policies and classic control."""
