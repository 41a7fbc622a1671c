#!/bin/sh
# Watches in a tmux session that outlives the login, or joins it: deploy/tmux.sh runs/ [more of `sentinel watch`]
exec tmux new-session -A -s sentinel -c "$PWD" "$(command -v sentinel)" watch "$@"
