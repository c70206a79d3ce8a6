# What Claude Code is told when a session starts. It never fails the host.
if command -v rondel >/dev/null 2>&1; then
  rondel hook session-start || true
else
  printf '%s\n' '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"The Rondel plugin is installed, but the command rondel is not on the PATH."}}'
fi
exit 0
