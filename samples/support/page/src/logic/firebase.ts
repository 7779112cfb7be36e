/** A separate file, so that it is loaded only with Firebase Authentication. */
export { initializeApp } from 'firebase/app';
export { getAuth, signInWithEmailAndPassword } from 'firebase/auth';
