#!/bin/sh
# Watch in a tmux session that survives a logout, or join that session.
# Usage: deploy/tmux.sh runs/ [other arguments of `sentinel watch`]
exec tmux new-session -A -s sentinel -c "$PWD" "$(command -v sentinel)" watch "$@"
