/** A file of its own: it is loaded where Firebase Authentication is used, and nowhere else. */
export { initializeApp } from 'firebase/app';
export { getAuth, signInWithEmailAndPassword } from 'firebase/auth';
