#include "tools/vpfsctl/top/top_screen.h"

#include <clocale>
#include <cstdio>

#define NCURSES_NOMACROS
#include <ncurses.h>
#include <unistd.h>

namespace vpfs::ctl {

struct TopScreen::State {
  SCREEN* screen = nullptr;
};

std::unique_ptr<TopScreen> TopScreen::open() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return nullptr;
  std::setlocale(LC_CTYPE, "");
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) return nullptr;
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  auto state = std::make_unique<State>();
  state->screen = screen;
  return std::unique_ptr<TopScreen>(new TopScreen(std::move(state)));
}

TopScreen::TopScreen(std::unique_ptr<State> state) : state_(std::move(state)) {}

TopScreen::~TopScreen() {
  endwin();
  delscreen(state_->screen);
}

std::size_t TopScreen::width() const {
  return static_cast<std::size_t>(std::max(1, getmaxx(stdscr)));
}

std::size_t TopScreen::height() const {
  return static_cast<std::size_t>(std::max(1, getmaxy(stdscr)));
}

void TopScreen::draw(const TopPage& page) {
  erase();
  int row = 0;
  for (const std::string& line : page.lines) {
    const bool is_title = page.titles == static_cast<std::size_t>(row);
    if (is_title) attron(A_REVERSE);
    mvaddstr(row, 0, line.c_str());
    if (is_title) {
      for (int column = getcurx(stdscr); column < getmaxx(stdscr) - 1; ++column) addch(' ');
      attroff(A_REVERSE);
    }
    ++row;
  }
  refresh();
}

std::optional<int> TopScreen::key(std::chrono::milliseconds patience) {
  timeout(static_cast<int>(patience.count()));
  switch (const int pressed = getch()) {
    case ERR:
    case KEY_RESIZE:
      return std::nullopt;
    case KEY_DOWN:
      return 'j';
    case KEY_UP:
      return 'k';
    default:
      return pressed;
  }
}

}  // namespace vpfs::ctl
