import { afterAll } from 'vitest';
import { endClients } from './database.ts';

// Runs before each file of tests: its clients end with it.
afterAll(endClients);
