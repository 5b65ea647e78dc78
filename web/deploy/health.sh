#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The health check of the image: dptrack-health [PORT] succeeds if the server answers.
exec 3<>"/dev/tcp/127.0.0.1/${1:-6007}" || exit 1
printf 'GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
read -r -t 3 line <&3
[[ $line == *' 200 '* ]]
