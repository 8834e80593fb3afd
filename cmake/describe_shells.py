"""Completions of a program for zsh and fish, made from what the program says of its options."""
from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Protocol


class Option(Protocol):
    names: list[str]
    value: str
    about: str


class Argument(Protocol):
    name: str
    count: str


class Command(Protocol):
    name: str
    about: str
    options: list[Option]
    arguments: list[Argument]


Words = Mapping[tuple[str, str, str], str]  # of an argument or option: program, command, name

FILES = ("FILE", "ENDPOINT")


class Program:
    """What both shells need of it."""

    def __init__(self, name: str, commands: Mapping[str, Command], live: Words, live_options: set[str], fixed: Words) -> None:
        self.name, self.commands = name, commands
        self.function = "_" + re.sub(r"\W", "_", name)
        self.live = {(command, argument): words for (owner, command, argument), words in live.items() if owner == name}
        self.fixed = {(command, what): words for (owner, command, what), words in fixed.items() if owner == name}
        every = [option for command in commands.values() for option in command.options]
        self.with_value = sorted({name for option in every if option.value for name in option.names})
        self.files = sorted({name for option in every if option.value in FILES for name in option.names})
        self.live_options = sorted({name for option in every for name in option.names} & live_options)

    def further(self, command: str) -> list[Command]:
        """The commands that may follow the words of this one."""
        depth = command.count(" ") + 1 if command else 0
        return [each for name, each in self.commands.items()
                if name and name.count(" ") == depth and (not command or name.startswith(command + " "))]

    def options(self, command: str) -> list[Option]:
        """Those of the command and of the program."""
        return [option for of in dict.fromkeys(["", command]) for option in self.commands[of].options]


def last_word(command: Command) -> str:
    return command.name.split(" ")[-1]


def described(name: str, about: str) -> str:
    """A word for _describe."""
    return shlex.quote(name.replace(":", "\\:") + ":" + about.replace(":", "\\:"))


def zsh(program: Program) -> str:
    valued = [name for name in program.live_options if name in program.with_value]
    flags = [name for name in program.live_options if name not in program.with_value]
    others = [name for name in program.with_value if name not in program.live_options]
    lines = [
        f"#compdef {program.name}",
        f"# Completion of {program.name} for zsh, made from the program's own options.",
        "local command='' word",
        "local -i arguments=0 skip=0",
        "local -a proxies further options",
        'for word in "${(@)words[2,CURRENT-1]}"; do',
        "  if (( skip )); then",
        '    (( skip == 2 )) && proxies+=("$word")',
        "    skip=0",
        "    continue",
        "  fi",
        "  case $word in",
    ]
    lines += [f"    {'|'.join(valued)}) proxies+=(\"$word\"); skip=2 ;;"] if valued else []
    lines += [f"    {'|'.join(flags)}) proxies+=(\"$word\") ;;"] if flags else []
    lines += [f"    {'|'.join(others)}) skip=1 ;;"] if others else []
    lines += ["    -*) ;;", "    *)", '      case "$command $word" in']
    for name in program.commands:
        if name:
            group, _, last = name.rpartition(" ")
            lines += [f"        {shlex.quote(group + ' ' + last)}) command={shlex.quote(name)} ;;"]
    lines += ["        *) (( arguments++ )) ;;", "      esac ;;", "  esac", "done", 'case ${words[CURRENT-1]} in']
    chosen = {what: words for (_, what), words in program.fixed.items() if what.startswith("-")}
    lines += [f"  {name}) compadd -- {words}; return ;;" for name, words in chosen.items()]
    lines += [f"  {'|'.join(program.files)}) _files; return ;;"] if program.files else []
    rest = [name for name in program.with_value if name not in program.files and name not in chosen]
    lines += [f"  {'|'.join(rest)}) return ;;"] if rest else []
    lines += ["esac", "case $command in"]
    for name, command in program.commands.items():
        further = " ".join(described(last_word(each), each.about) for each in program.further(name))
        options = " ".join(described(each, option.about) for option in program.options(name) for each in option.names)
        lines += [f"  {shlex.quote(name)})", f"    further=({further})", f"    options=({options})"]
        for position, argument in enumerate(command.arguments):
            condition = f"arguments == {position}" if argument.count == "one" else f"arguments >= {position}"
            key = (name, argument.name)
            if key in program.live:
                # A proxy that is not there gives no words.
                lines += [f"    (( {condition} )) && [[ ${{words[CURRENT]}} != -* ]] &&",
                          f'      compadd -- ${{(f)"$({program.name} $proxies --timeout 1s {program.live[key]} 2>/dev/null)"}}']
            elif key in program.fixed:
                lines += [f"    (( {condition} )) && [[ ${{words[CURRENT]}} != -* ]] && compadd -- {program.fixed[key]}"]
        lines += ["    ;;"]
    lines += ["esac", "if [[ ${words[CURRENT]} == -* ]]; then", "  _describe -o option options",
              "elif (( ${#further} )); then", "  _describe command further", "fi"]
    return "\n".join(lines) + "\n"


def fish_word(text: str) -> str:
    """Quoted for fish, where only \\ and ' mean something between single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(program: Program, command: str, option: Option) -> str:
    words = ["complete", "-c", program.name]
    if command:
        words += ["-n", fish_word(f"_{program.function}_at {fish_word(command)}")]
    for name in option.names:
        words += ["-l" if name.startswith("--") else "-s", name.lstrip("-")]
    chosen = next((program.fixed[key] for key in program.fixed if key[1] in option.names), None)
    if chosen:
        words += ["-x", "-a", fish_word(chosen)]
    elif option.value:
        words += ["-r", "-F"] if option.value in FILES else ["-x"]
    return " ".join([*words, "-d", fish_word(option.about)])


def fish(program: Program) -> str:
    names = " ".join(fish_word(name) for name in program.commands if name)
    valued = " ".join(program.with_value)
    lines = [
        f"# Completion of {program.name} for fish, made from the program's own options.",
        f"function _{program.function}_at --description 'whether the command so far is this one'",
        "    set -l command ''",
        "    set -l skip 0",
        "    for word in (commandline -opc)[2..-1]",
        "        if test $skip = 1",
        "            set skip 0",
        "            continue",
        "        end",
        "        switch $word",
        *([f"            case {valued}", "                set skip 1"] if valued else []),
        "            case '-*'",
        "            case '*'",
        "                set -l longer (string trim -- \"$command $word\")",
        f"                contains -- $longer {names}; and set command $longer",
        "        end",
        "    end",
        "    test \"$command\" = \"$argv[1]\"",
        "end",
    ]
    if program.live:
        flags = [name for name in program.live_options if name not in program.with_value]
        valued = " ".join(name for name in program.live_options if name in program.with_value)
        lines += [
            f"function _{program.function}_live --description 'what a running vpfs says'",
            "    set -l proxies",
            "    set -l takes 0",
            "    for word in (commandline -opc)[2..-1]",
            "        if test $takes = 1",
            "            set -a proxies $word",
            "            set takes 0",
            "            continue",
            "        end",
            "        switch $word",
            f"            case {valued}",
            "                set -a proxies $word",
            "                set takes 1",
            *([f"            case {' '.join(flags)}", "                set -a proxies $word"] if flags else []),
            "        end",
            "    end",
            f"    {program.name} $proxies --timeout 1s $argv 2>/dev/null",
            "end",
        ]
    lines += [f"complete -c {program.name} -f"]
    for name, command in program.commands.items():
        at = fish_word(f"_{program.function}_at {fish_word(name)}")
        lines += [f"complete -c {program.name} -n {at} -a {last_word(each)} -d {fish_word(each.about)}"
                  for each in program.further(name)]
        lines += [fish_option(program, name, option) for option in command.options]
        for argument in command.arguments:
            key = (name, argument.name)
            if key in program.live:
                lines += [f"complete -c {program.name} -n {at} -a '(_{program.function}_live {program.live[key]})'"]
            elif key in program.fixed:
                lines += [f"complete -c {program.name} -n {at} -a {fish_word(program.fixed[key])}"]
            elif argument.name in FILES:
                lines += [f"complete -c {program.name} -n {at} -F"]
    return "\n".join(lines) + "\n"
