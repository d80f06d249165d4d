"""Files that run a plan: systemd units, nginx site, compose file, environment files, Ray lines. Text only; pure."""
