// The web component <holdfast-seats>, for any page: <script type="module" src="https://tickets.example/holdfast.js"></script>.
// The server serves this file at /holdfast.js, so the path below is that of the served tree.
export * from './web/seats/element.js';
