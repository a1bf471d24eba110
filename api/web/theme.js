// Sets the theme before anything is painted, so that a dark page never flashes white. Not a module: those run too late.
const THEMES = ["auto", "light", "dark"];

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

let theme = localStorage.getItem("theme");
if (!THEMES.includes(theme)) theme = "auto";
setTheme(theme);

document.addEventListener("DOMContentLoaded", () => {
  const name = document.getElementById("theme-name");
  const button = document.getElementById("theme");
  const show = () => {
    name.textContent = theme;
    button.setAttribute("aria-label", `Theme: ${theme}`);
  };
  show();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("theme", theme);
    setTheme(theme);
    show();
  });
});
