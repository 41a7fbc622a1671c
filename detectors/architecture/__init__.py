"""Parts of a model that leave their balance: routers of experts, attention."""
